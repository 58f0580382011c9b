// Package lockfile tells which process has locked a file.
package lockfile

// Unknown is the process id of Holder if the system does not tell whose lock it is.
const Unknown = -1
