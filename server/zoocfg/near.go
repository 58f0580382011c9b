package zoocfg

// Keys that are mistyped. ZooKeeper makes them system properties, which it then does not read.

import "strings"

// meant names the known key that name is probably to be, as "; did you mean tickTime?"; it is empty if none is near.
func meant(name string) string {
	const most = 2
	best, key := most+1, ""
	for _, k := range zooKeys {
		if strings.HasSuffix(k.name, "*") || max(len(name), len(k.name))-min(len(name), len(k.name)) > most {
			continue
		}
		// Of a short name, two letters may be half of it.
		if d := distance(strings.ToLower(name), strings.ToLower(k.name)); d < best && 3*d < len(k.name) {
			best, key = d, k.name
		}
	}
	if key == "" {
		return ""
	}
	return "; did you mean " + key + "?"
}

// distance is how many letters to insert, leave out, replace, or exchange with their neighbour make b of a.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range len(b) + 1 {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replaced := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
