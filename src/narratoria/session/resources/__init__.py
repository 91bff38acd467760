"""What tools use besides the session: filesystems and whatever a program binds."""
