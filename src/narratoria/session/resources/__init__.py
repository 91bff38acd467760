"""Resources that tools use besides the session: filesystems and others that a program binds."""
