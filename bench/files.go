package main

import (
	"encoding/csv"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The files in the folder docs that this program writes.
const (
	allFile     = "benchmarks-all.md"
	summaryFile = "benchmarks.md"
	plotFile    = "benchmarks.svg"
	historyFile = "benchmarks-history.csv"
)

// publish writes the sections that were measured into docs, draws the summary again from all figures there, and appends
// the main figures of the sections to the history. Without sections it only draws.
func publish(docs string, written []section, m *machine) error {
	old, err := os.ReadFile(filepath.Join(docs, allFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text := string(page(string(old), written))
	all := results(text)
	readmePath := filepath.Join(docs, "..", "README.md")
	readme, err := os.ReadFile(readmePath)
	if err != nil {
		return err
	}
	withTable, err := inReadme(string(readme), all)
	if err != nil {
		return err
	}
	for path, text := range map[string]string{
		filepath.Join(docs, allFile):     text,
		filepath.Join(docs, summaryFile): summary(all),
		filepath.Join(docs, plotFile):    plot(all),
		readmePath:                       withTable,
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if len(written) == 0 {
		return nil
	}
	return remember(filepath.Join(docs, historyFile), written, m)
}

// remember appends to the history what has a target or is in the summary.
func remember(path string, written []section, m *machine) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	w := csv.NewWriter(f)
	if end == 0 {
		// An error is kept for w.Error.
		_ = w.Write([]string{"date", "commit", "load", "contender", "median", "unit", "ratio", "target"})
	}
	for _, s := range written {
		for _, r := range results(s.text) {
			main := slices.ContainsFunc(mainFigures, func(f mainFigure) bool {
				return f.load == r.load && slices.Contains(f.contenders[:], r.contender)
			})
			if main || r.target != "" {
				median := strconv.FormatFloat(r.median, 'f', -1, 64)
				target := strings.ReplaceAll(r.target, "**", "")
				_ = w.Write([]string{m.date, m.commit, r.load, r.contender, median, r.unit, r.ratio, target})
			}
		}
	}
	w.Flush()
	return errors.Join(w.Error(), f.Close())
}
