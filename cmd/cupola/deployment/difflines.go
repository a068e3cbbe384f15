package deployment

import (
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// diffLines are the lines in which two texts differ, with some around them: each
// begins with "- ", "+ " or two spaces. "  …" stands for lines between that both
// have. There are none for equal texts.
func diffLines(was, is string) (out []string) {
	const header = 3 // lines that name the texts
	text := strings.TrimSuffix(string(diff.Diff("was", []byte(was), "is", []byte(is))), "\n")
	if text == "" {
		return nil
	}
	for _, line := range strings.Split(text, "\n")[header:] {
		switch {
		case strings.HasPrefix(line, "@@") && out != nil:
			out = append(out, "  …")
		case strings.HasPrefix(line, "@@"), strings.HasPrefix(line, `\`): // no newline at the end of a text
		default:
			out = append(out, line[:1]+" "+line[1:])
		}
	}
	return out
}
