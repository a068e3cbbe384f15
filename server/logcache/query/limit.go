package query

import (
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/strutil"

	"cupola/server/logcache"
)

// What a query may have that the engine's bound of samples says nothing of.
const (
	maxSelectors  = 100 // each has its own samples
	maxLabelBytes = 64 << 10
	ownLabelBytes = 512 // about those that a series has before anything is done to it
)

// checkPatterns refuses a query's text whose regular expressions take much memory,
// before any is compiled.
func checkPatterns(text string) error {
	var item parser.Item
	for l := parser.Lex(text); ; {
		l.NextItem(&item)
		switch item.Typ {
		case parser.EOF, parser.ERROR:
			return nil // what is wrong is the parser's to say
		case parser.STRING:
			plain, err := strutil.Unquote(item.Val)
			if err == nil {
				err = logcache.CheckPattern(plain)
			}
			if errors.Is(err, logcache.ErrPattern) {
				return err
			}
		}
	}
}

// checkSize refuses a query that makes much of few samples.
func checkSize(expr parser.Expr) error {
	if n := len(parser.ExtractSelectors(expr)); n > maxSelectors {
		return fmt.Errorf("query has %d selectors; at most %d are answered", n, maxSelectors)
	}
	if labelBytes(expr) > maxLabelBytes {
		return fmt.Errorf("query makes labels of more than %d bytes by label_replace and label_join", maxLabelBytes)
	}
	return nil
}

// labelBytes is how many bytes the labels of a series can have that an expression
// gives; more than maxLabelBytes is enough.
func labelBytes(n parser.Node) int {
	size := ownLabelBytes
	for _, c := range parser.Children(n) {
		size = max(size, labelBytes(c))
	}
	if call, ok := n.(*parser.Call); ok {
		switch {
		case call.Func.Name == "label_replace" && len(call.Args) > 2:
			by := literal(call.Args[2])
			size += len(by) + strings.Count(by, "$")*size
		case call.Func.Name == "label_join" && len(call.Args) > 2:
			size += (len(call.Args) - 3) * (size + len(literal(call.Args[2])))
		}
	}
	return min(size, maxLabelBytes+1)
}

func literal(e parser.Expr) string {
	for {
		switch x := e.(type) {
		case *parser.ParenExpr:
			e = x.Expr
		case *parser.StepInvariantExpr:
			e = x.Expr
		case *parser.StringLiteral:
			return x.Val
		default:
			return ""
		}
	}
}
