"""What commands print that no job answers."""
