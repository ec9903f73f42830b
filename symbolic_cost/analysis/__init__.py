"""Normal forms of costs, and how costs scale with their symbols."""
