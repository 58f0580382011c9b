package cli

import "os"

// end ends the process.
func (e *exitError) end() { os.Exit(e.code) }
