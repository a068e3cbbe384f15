package uaa

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"cupola/runtime/pattern"
)

// attributes are what filters can ask for, by lower-case name; upper case in
// values is lower.
type attributes map[string][]string

// filter reports whether something is wanted.
type filter func(attributes) bool

// maxFilter bounds a filter's text, and with it how deep it can go.
const maxFilter = 4096

var errFilter = errors.New("invalid filter")

// tokenPattern is a word of SCIM's filters: a bracket, a quoted text, a name.
var tokenPattern = pattern.Lazy(`^\s*([()]|"(?:[^"\\]|\\.)*"|[^\s()"]+)`)

// parseFilter reads a SCIM filter: attribute eq, co, sw or pr; and, or; and
// brackets. "" wants everything.
func parseFilter(text string) (filter, error) {
	if strings.TrimSpace(text) == "" {
		return func(attributes) bool { return true }, nil
	}
	bad := refuse(http.StatusBadRequest, "scim", "Invalid filter expression: [%s]", text)
	if len(text) > maxFilter {
		return nil, refuse(http.StatusBadRequest, "scim", "Invalid filter expression: it has more than %d bytes", maxFilter)
	}
	p := &filterParser{}
	for rest := text; strings.TrimSpace(rest) != ""; {
		m := tokenPattern().FindStringSubmatch(rest)
		if m == nil {
			return nil, bad
		}
		p.words, rest = append(p.words, m[1]), rest[len(m[0]):]
	}
	f, err := p.or()
	if err != nil || len(p.words) > 0 {
		return nil, bad
	}
	return f, nil
}

type filterParser struct{ words []string }

func (p *filterParser) next() (word string) {
	if len(p.words) > 0 {
		word, p.words = p.words[0], p.words[1:]
	}
	return word
}

// take takes the word, if it is the next.
func (p *filterParser) take(word string) bool {
	ok := len(p.words) > 0 && strings.EqualFold(p.words[0], word)
	if ok {
		p.words = p.words[1:]
	}
	return ok
}

func (p *filterParser) or() (filter, error) {
	left, err := p.and()
	for err == nil && p.take("or") {
		var right filter
		first := left
		right, err = p.and()
		left = func(a attributes) bool { return first(a) || right(a) }
	}
	return left, err
}

func (p *filterParser) and() (filter, error) {
	left, err := p.one()
	for err == nil && p.take("and") {
		var right filter
		first := left
		right, err = p.one()
		left = func(a attributes) bool { return first(a) && right(a) }
	}
	return left, err
}

func (p *filterParser) one() (filter, error) {
	if p.take("(") {
		f, err := p.or()
		if err == nil && !p.take(")") {
			err = errFilter
		}
		return f, err
	}
	name, op := strings.ToLower(p.next()), strings.ToLower(p.next())
	if !scimAttributes[name] {
		return nil, errFilter
	}
	if op == "pr" {
		return func(a attributes) bool { return slices.ContainsFunc(a[name], func(v string) bool { return v != "" }) }, nil
	}
	compare := map[string]func(have, want string) bool{"co": strings.Contains, "sw": strings.HasPrefix,
		"eq": func(have, want string) bool { return have == want }}[op]
	want, ok := literal(p.next())
	if compare == nil || !ok {
		return nil, errFilter
	}
	want = strings.ToLower(want)
	return func(a attributes) bool {
		return slices.ContainsFunc(a[name], func(have string) bool { return compare(strings.ToLower(have), want) })
	}, nil
}

// literal is the value of a filter: a quoted text, or true or false.
func literal(word string) (string, bool) {
	if word == "true" || word == "false" {
		return word, true
	}
	if len(word) < 2 || word[0] != '"' || word[len(word)-1] != '"' {
		return "", false
	}
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(word[1 : len(word)-1]), true
}

// resource is one of a list.
type resource struct {
	attributes
	view func() doc // made for what is shown alone
}

// maxPage is UAA's limit of a page.
const maxPage = 500

// listPage answers with those that the request's filter wants, from startIndex
// on, count at most.
func listPage(r *http.Request, all []resource) (int, any, error) {
	q := r.URL.Query()
	wanted, err := parseFilter(q.Get("filter"))
	if err != nil {
		return 0, nil, err
	}
	all = slices.DeleteFunc(all, func(one resource) bool { return !wanted(one.attributes) })
	if by := strings.ToLower(q.Get("sortBy")); scimAttributes[by] {
		slices.SortStableFunc(all, func(a, b resource) int { return slices.Compare(a.attributes[by], b.attributes[by]) })
		if strings.EqualFold(q.Get("sortOrder"), "descending") {
			slices.Reverse(all)
		}
	}
	start, count := number(q.Get("startIndex"), 1), number(q.Get("count"), 100)
	start, count = max(start, 1), min(max(count, 1), maxPage)
	shown := []doc{}
	for _, one := range all[min(start-1, len(all)):min(start-1+count, len(all))] {
		shown = append(shown, one.view())
	}
	return http.StatusOK, doc{"resources": shown, "startIndex": start, "itemsPerPage": count, "totalResults": len(all), "schemas": scimSchemas}, nil
}

// scimAttributes are what lists can be filtered and sorted by.
var scimAttributes = map[string]bool{"id": true, "username": true, "origin": true, "emails.value": true, "email": true, "name.givenname": true,
	"name.familyname": true, "givenname": true, "familyname": true, "active": true, "displayname": true, "members.value": true, "client_id": true}

var scimSchemas = []string{"urn:scim:schemas:core:1.0"}

// number is a number of a query, within what can be counted with.
func number(text string, otherwise int) int {
	n, err := strconv.Atoi(text)
	if err != nil || n > 1<<30 {
		return otherwise
	}
	return n
}
