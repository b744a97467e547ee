"""What an audit returns: its tables, and the forms and places they are written in."""
