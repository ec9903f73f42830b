"""What commands print: one module per command, named alike."""
