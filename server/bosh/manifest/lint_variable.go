package manifest

import (
	"fmt"
	"slices"
	"strings"

	"cupola/runtime/pattern"
	"cupola/runtime/suggest"
	"cupola/server/bosh/interpolate"
	"cupola/server/bosh/tree"
	"cupola/server/bosh/variables"
)

// variableName is what a reference can hold before its fields.
var variableName = pattern.Lazy(`^[-/\w\pL]+$`)

func (l *linter) variables() {
	seen := map[string]bool{}
	for i := range l.m.Variables {
		v := &l.m.Variables[i]
		switch {
		case v.Name == "":
			l.found.errorf(v.At, "the variable has no name")
		case !variableName().MatchString(v.Name) || len(v.Name) > maxName:
			l.found.errorf(v.At, "nothing can refer to the name %q; it takes letters, digits, underscores, hyphens and slashes", cut(v.Name, 60))
		case seen[v.Name]:
			l.found.errorf(v.At, "there is another variable %q", v.Name)
		}
		seen[v.Name] = true
		if m := v.UpdateMode; m != "" && !slices.Contains(variables.Modes, variables.Mode(m)) {
			l.found.errorf(At{v.Path + "/update_mode", v.Line}, "unknown mode %q; it is no-overwrite, overwrite or converge", cut(m, 60))
		}
		l.variable(v)
	}
	if _, err := variables.Order(l.m.Declared()); err != nil && strings.Contains(err.Error(), "recursion") {
		l.found.errorf(At{Path: "/variables", Line: l.m.at.Line}, "%v", err)
	}
}

func (l *linter) variable(v *Variable) {
	t := variables.Type(v.Type)
	names := variables.Names(t)
	if names == nil {
		l.found.errorf(At{v.Path + "/type", v.Line}, "unsupported variable type %q; it is password, certificate, rsa or ssh", cut(v.Type, 60))
		return
	}
	at := At{v.Path + "/options", v.Line}
	options, problems := variables.Parse(t, v.Options)
	var ignored []string
	for _, p := range problems {
		switch meant := suggest.Name(p.Key, names); {
		case p.Ignored && meant != "":
			l.found.add(Finding{Level: Warning, Path: at.Path, Line: at.Line, What: fmt.Sprintf("unknown key %q (did you mean %q?)", cut(p.Key, 100), meant), unknown: true})
		case p.Ignored:
			ignored = append(ignored, cut(p.Key, 100))
		default:
			l.found.errorf(At{at.Path + "/" + tree.Escape(p.Key), at.Line}, "%s", p.What)
		}
	}
	if ignored != nil {
		slices.SortFunc(ignored, l.written(v))
		verb := "has"
		if len(ignored) > 1 {
			verb = "have"
		}
		l.found.warnf(at, "%s %s no effect on type %s", strings.Join(ignored, ", "), verb, v.Type)
	}
	if t == variables.Certificate {
		l.certificate(v, options)
	}
}

// written compares options by where they stand.
func (l *linter) written(v *Variable) func(a, b string) int {
	place := map[string]int{}
	for _, n := range tree.Get(l.m.root, "variables").Content {
		if name := tree.Get(n, "name"); name != nil && name.Value == v.Name {
			if options := tree.Get(n, "options"); options != nil {
				for i, key := range options.Content {
					place[cut(key.Value, 100)] = i
				}
			}
		}
	}
	return func(a, b string) int { return place[a] - place[b] }
}

func (l *linter) certificate(v *Variable, o variables.Options) {
	if v.Options["common_name"] == nil && v.Options["alternative_names"] == nil {
		l.found.warnf(At{v.Path + "/options", v.Line}, "the certificate has no common_name; give one")
	}
	if o.CA == "" {
		return
	}
	at := At{v.Path + "/options/ca", v.Line}
	switch ca := l.byName[o.CA]; {
	case ca == nil:
		l.missing(interpolate.Reference{Name: o.CA, Path: at.Path, Line: at.Line}, o.CA)
	case ca.Type != string(variables.Certificate):
		l.found.errorf(at, "%q is not a certificate", o.CA)
	case ca.Options["is_ca"] != true:
		l.found.errorf(at, "%q is not a CA; give it is_ca", o.CA)
	}
}

// references reports every undeclared variable, once.
func (l *linter) references() {
	if l.m.root == nil {
		return
	}
	reported := map[string]bool{}
	for _, r := range interpolate.References(l.m.root) {
		text := strings.Join(append([]string{r.Name}, r.Fields...), ".")
		v, field := l.declared(r)
		switch {
		case len(l.found) > maxFindings:
			return
		case reported[r.Name] && v == nil, reported[text]:
		case v == nil:
			l.missing(r, text)
		case field != "" && !slices.Contains(variables.Fields[variables.Type(v.Type)], field) && variables.Names(variables.Type(v.Type)) != nil:
			l.found.errorf(At{r.Path, r.Line}, "((%s)): a %s has no field %q%s", cut(text, 100), v.Type, cut(field, 60), suggest.Hint(field, variables.Fields[variables.Type(v.Type)]))
		}
		reported[text] = true
		reported[r.Name] = reported[r.Name] || v == nil
	}
}

// declared is the variable that a reference is of, and the field that is asked
// of it; nil when the manifest declares none.
func (l *linter) declared(r interpolate.Reference) (v *Variable, field string) {
	if len(r.Fields) > 0 {
		field = r.Fields[0]
	}
	if v := l.byName[r.Name]; v != nil {
		return v, field
	}
	if i := strings.LastIndexByte(r.Name, '/'); i > 0 {
		return l.byName[r.Name[:i]], r.Name[i+1:]
	}
	return nil, ""
}

// missing reports a variable without a value that the user must give.
func (l *linter) missing(r interpolate.Reference, text string) {
	if slices.Contains(l.o.Given, r.Name) {
		return
	}
	what := fmt.Sprintf("((%s)) is not declared%s", cut(text, 100), suggest.Hint(r.Name, l.known))
	if l.o.Given != nil {
		l.found.errorf(At{r.Path, r.Line}, "%s; give it a value", what)
		return
	}
	l.found.warnf(At{r.Path, r.Line}, "%s; treated as implicit variable %s", what, l.m.Names().ImplicitVariable(VariableKeys([]string{r.Name})[r.Name]))
}
