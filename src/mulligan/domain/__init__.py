"""What Mulligan talks about: frozen facts and the rules over them. Pure."""
