"""The wire: HTTP and JSON-RPC in, HTTP and JSON-RPC out.

`app` is the door. `http` and `cors` know API Gateway and browsers; `jsonrpc` reads a request's envelope,
`envelope` writes an answer's; `ladder` has the checks in their order, with `headers` for the mirrored
ones and `legacy` as the place of earlier revisions. `methods` is the table of methods, `listen` one of
them, and `calls` the largest: it runs what users wrote (`user_code`), asks with a signed state (`seal`),
and waits for tasks on behalf of clients that know none (`waiting`). `protocol` has the names they share.
"""
