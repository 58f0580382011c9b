//go:build unix

package cli

// settings is the file with the settings of the machine.
const settings = "/etc/turnstile/turnstile.env"
