module github.com/seed-a3166700/turnstile/bench

go 1.26.0

replace github.com/seed-a3166700/turnstile => ../

require (
	github.com/go-zookeeper/zk v1.0.4
	github.com/seed-a3166700/turnstile v0.0.0
)
