// Package conformance has no code of its own. Its tests run one script against the embedded server and against Apache
// ZooKeeper 3.8.0, frame by frame: every answer, error, stat field and watch event goes into a transcript, and the
// transcripts must be equal. Where ZooKeeper 3.9 differs from 3.8.0 the embedded server follows 3.9, and the script
// declares at that place what each side must answer.
//
// The transcripts of Apache ZooKeeper are in testdata, so that the script also runs where Java is not installed:
//
//	go test ./conformance              # against Apache ZooKeeper if it is installed, and against its transcripts
//	go test ./conformance -update      # write the transcripts anew
//	go test ./conformance -run Random -seed 7 -steps 500
package conformance
