"""The main agent: one loop of model and tools, told as events, and the ports through which it meets a face."""
