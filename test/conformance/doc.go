// Package conformance has no code of its own. Its tests run one script against the embedded server and against Apache
// ZooKeeper, frame by frame: every answer, error, stat field and watch event goes into a transcript, and they must be
// equal. Versions 3.8.0, 3.9.3 and 3.9.6 were tried. Where they differ the embedded server follows the newest, and the
// script declares at that place what each must answer, and since when.
//
// The transcripts of Apache ZooKeeper are in testdata, so that the script also runs where Java is not installed:
//
//	go test ./conformance              # against Apache ZooKeeper if it is installed, and against its transcripts
//	go test ./conformance -update      # write the transcripts anew
//	go test ./conformance -run Random -seed 7 -steps 500
package conformance
