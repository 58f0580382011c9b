package cli

// runAsInit does nothing: Windows has no orphans to reap.
func runAsInit() {}
