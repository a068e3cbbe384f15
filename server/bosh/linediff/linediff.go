package linediff

import (
	"slices"
	"strings"
)

// context is how many equal lines are shown around those that differ.
const context = 3

// Lines are the lines in which two texts differ, with some around them: each
// begins with "- ", "+ " or two spaces. "  …" stands for lines between that both
// have. There are none for texts of the same lines.
func Lines(was, is string) (out []string) {
	all := edits(splitLines(was), splitLines(is))
	shown := make([]bool, len(all))
	for n, line := range all {
		if line[0] == ' ' {
			continue
		}
		for at := max(0, n-context); at <= min(len(all)-1, n+context); at++ {
			shown[at] = true
		}
	}
	for n, line := range all {
		if !shown[n] {
			continue
		}
		if n > 0 && !shown[n-1] && out != nil {
			out = append(out, "  …")
		}
		out = append(out, line)
	}
	return out
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// pair are the indexes of one line in two texts.
type pair struct{ was, is int }

// edits are all lines of two texts, each with what becomes of it in front: lines that
// both have exactly once, in the same order, hold the texts together (patience diff).
func edits(was, is []string) (all []string) {
	at := pair{}
	add := func(prefix string, lines []string) {
		for _, line := range lines {
			all = append(all, prefix+line)
		}
	}
	for _, p := range slices.Concat([]pair{{}}, anchors(was, is), []pair{{len(was), len(is)}}) {
		if p.was < at.was || p.is < at.is {
			continue
		}
		for p.was > at.was && p.is > at.is && was[p.was-1] == is[p.is-1] {
			p.was, p.is = p.was-1, p.is-1
		}
		add("- ", was[at.was:p.was])
		add("+ ", is[at.is:p.is])
		for at = p; at.was < len(was) && at.is < len(is) && was[at.was] == is[at.is]; at.was, at.is = at.was+1, at.is+1 {
			all = append(all, "  "+was[at.was])
		}
	}
	return all
}

// anchors are the lines that both texts have exactly once, as many as keep their order.
func anchors(was, is []string) []pair {
	type count struct{ was, is, at int }
	seen := map[string]*count{}
	of := func(line string) *count {
		if seen[line] == nil {
			seen[line] = &count{}
		}
		return seen[line]
	}
	for n, line := range is {
		c := of(line)
		c.is, c.at = c.is+1, n
	}
	for _, line := range was {
		of(line).was++
	}
	var common []pair
	for n, line := range was {
		if c := seen[line]; c.was == 1 && c.is == 1 {
			common = append(common, pair{n, c.at})
		}
	}
	return longestRising(common)
}

// longestRising is a longest list of pairs, which rise in was, that rise in is, too.
func longestRising(pairs []pair) []pair {
	var ends []int // ends[k]: the pair that ends the best list of k+1 pairs
	before := make([]int, len(pairs))
	for n, p := range pairs {
		k, _ := slices.BinarySearchFunc(ends, p.is, func(end, is int) int { return pairs[end].is - is })
		if before[n] = -1; k > 0 {
			before[n] = ends[k-1]
		}
		if k == len(ends) {
			ends = append(ends, n)
		} else {
			ends[k] = n
		}
	}
	if len(ends) == 0 {
		return nil
	}
	var rising []pair
	for n := ends[len(ends)-1]; n >= 0; n = before[n] {
		rising = append(rising, pairs[n])
	}
	slices.Reverse(rising)
	return rising
}
