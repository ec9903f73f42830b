"""Tables for people: one function per question, a setup in, a sheet out."""
