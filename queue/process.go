package queue

// What a process tells people about itself.

import (
	"os"
	"path/filepath"
)

// processInfo is what the nodes of consumers and pauses tell people about the process that made them.
type processInfo struct {
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Program string `json:"program"`
}

// thisProcess describes this process to people.
func thisProcess() processInfo {
	host, err := os.Hostname()
	if err != nil {
		host = "?" // people read this, no program does
	}
	return processInfo{Host: host, PID: os.Getpid(), Program: filepath.Base(os.Args[0])}
}
