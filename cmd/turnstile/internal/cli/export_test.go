package cli

// NewRoot is newRoot, for tests that look at all commands.
var NewRoot = newRoot
