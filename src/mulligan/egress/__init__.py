"""The one way out of a sandbox: to the model, which is sent its key from here, and to hosts."""
