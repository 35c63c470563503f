"""What has to outlast a process: the ledger, the files of the attempts, and the lock on both."""
