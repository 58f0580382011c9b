module github.com/seed-a3166700/turnstile

go 1.26
