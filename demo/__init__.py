"""`make demo`: an official MCP client drives real tasks on the local stack and checks every step of it."""
