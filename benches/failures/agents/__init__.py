"""An agent for each client: a program that takes commands, and tells what came of them."""
