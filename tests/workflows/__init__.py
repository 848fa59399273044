"""State machines and containers, executed: in moto's interpreter, in MiniStack, and as processes of this machine."""
