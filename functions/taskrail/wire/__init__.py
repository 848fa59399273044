"""The wire: HTTP and JSON-RPC in, HTTP and JSON-RPC out.

`app` is the door. `http` and `cors` know API Gateway and browsers, `jsonrpc` the envelope of a request
and `envelope` that of an answer, `ladder` the order of the checks, `headers` the mirrored headers,
`methods` and `calls` what a method does, `legacy` the place of earlier revisions.
"""
