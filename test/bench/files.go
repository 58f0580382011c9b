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

// The files of the repository that this program writes.
const (
	allFile     = "test/bench/figures.md"
	historyFile = "test/bench/history.csv"
	summaryFile = "docs/benchmarks.md"
	plotFile    = "docs/benchmarks.svg"
	readmeFile  = "README.md"
)

// publish writes the sections that were measured into the repository at root, draws the summary again from all figures
// there, and appends the main figures of the sections to the history. Without sections it only draws.
func publish(root string, written []section, m *machine) error {
	old, err := os.ReadFile(filepath.Join(root, allFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text := string(page(string(old), written))
	all := results(text)
	readme, err := os.ReadFile(filepath.Join(root, readmeFile))
	if err != nil {
		return err
	}
	withTable, err := inReadme(string(readme), all)
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		allFile: text, summaryFile: summary(all), plotFile: plot(all), readmeFile: withTable,
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if len(written) == 0 {
		return nil
	}
	return remember(filepath.Join(root, historyFile), written, m)
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
