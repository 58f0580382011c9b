module github.com/seed-a3166700/turnstile/discovery/grpcresolver

go 1.26.0

require (
	github.com/seed-a3166700/turnstile v0.0.0
	google.golang.org/grpc v1.81.1
)

require (
	golang.org/x/net v0.51.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260226221140-a57be14db171 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/seed-a3166700/turnstile => ../..
