package main

import "strings"

// diffContext is how many lines are shown around each change.
const diffContext = 3

// diffLines are the lines in which two texts differ, with some around them: each
// begins with "- ", "+ " or two spaces.
func diffLines(was, is string) (out []string) {
	a, b := lines(was), lines(is)
	all := script(a, b)
	show := make([]bool, len(all))
	for n, l := range all {
		if l[0] == ' ' {
			continue
		}
		for i := max(n-diffContext, 0); i <= min(n+diffContext, len(all)-1); i++ {
			show[i] = true
		}
	}
	for n, l := range all {
		switch {
		case show[n]:
			out = append(out, l)
		case n > 0 && show[n-1]:
			out = append(out, "  …")
		}
	}
	return out
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// script is how a becomes b: by the longest list of lines that both have.
func script(a, b []string) (out []string) {
	common := make([][]int32, len(a)+1) // of a[i:] and b[j:]
	for i := range common {
		common[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, "  "+a[i])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			out = append(out, "- "+a[i])
			i++
		default:
			out = append(out, "+ "+b[j])
			j++
		}
	}
	return out
}
