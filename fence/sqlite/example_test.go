package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/fence"
)

// The database has seen token 8, so it refuses the late write of the holder that had token 7.
func Example() {
	ctx := context.Background() // hold.Context(), so that a lost lock ends the wait
	db, err := sql.Open("sqlite", "file:shop?mode=memory&cache=shared")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	if err := shopping(ctx, db); err != nil {
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// fence: the lock has passed to a later holder: token 7 for "stock" is older than 8
	// 10 left
}

func shopping(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, "CREATE TABLE stock (amount INTEGER); INSERT INTO stock VALUES (0)"); err != nil {
		return err
	}
	f, err := fence.NewTable(fence.SQLite, "") // or PostgreSQL, MySQL; the table is turnstile_fence
	if err != nil {
		return err
	}
	if err := f.Create(ctx, db); err != nil { // or run f.Schema() with your migrations
		return err
	}
	set := func(token fence.Token, amount int) error { // token is hold.Token()
		return f.Do(ctx, db, "stock", token, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE stock SET amount = ?", amount)
			return err
		})
	}
	fmt.Println(set(8, 10))
	err = set(7, 99) // a holder that was stopped before its write, and goes on after its session
	fmt.Println(err)
	if !errors.Is(err, fence.ErrStale) {
		return err
	}
	var amount int
	if err := db.QueryRowContext(ctx, "SELECT amount FROM stock").Scan(&amount); err != nil {
		return err
	}
	fmt.Println(amount, "left")
	return nil
}
