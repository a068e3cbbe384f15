package cf

import (
	"strings"

	"cupola/runtime/pattern"
)

// AnySource is the source of a policy that lets in every app.
const AnySource = "cf:any"

// RoutePolicy lets a source call a route of a domain that enforces policies.
type RoutePolicy struct {
	Resource
	Metadata
	RouteGUID string
	Source    string // AnySource, "cf:app:<guid>", "cf:space:<guid>" or "cf:org:<guid>"
}

var sourcePattern = pattern.Lazy(`^(cf:(app|space|org):[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|cf:any)$`)

// IsSource reports whether a text is a source in Cloud Controller's form.
func IsSource(text string) bool { return sourcePattern().MatchString(text) }

// SourceGUID is the GUID in the source where it is of a kind ("app", "space",
// "org"), else "".
func (p *RoutePolicy) SourceGUID(kind string) string {
	guid, ok := strings.CutPrefix(p.Source, "cf:"+kind+":")
	if !ok {
		return ""
	}
	return guid
}
