"""The GitHub Action: its inputs, and its reports to the runner."""
