package alerts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cupola/runtime/lrp"
	"cupola/runtime/pattern"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// maxOfSpace is how many processes of a space have separate alerts of one rule: a user who
// breaks a thousand apps does not bury what others have to know.
const maxOfSpace = 20

// recovered is how long an instance must run before its crashes are past, as for Diego.
const recovered = 5 * time.Minute

// appSource finds what is wrong with instances.
type appSource struct {
	*Parts
	said map[string]saying // why a process crashed, by its GUID
}

// saying is why a process crashed, as it was after so many crashes.
type saying struct {
	crashes int
	text    string
}

// troubled are the instances of one process of which a rule holds.
type troubled struct {
	rule    string
	process string // its GUID, without a version
	actuals []*lrp.Actual
}

func (s *appSource) find(ctx context.Context, rules map[string]Rule, now time.Time) (found []Finding, err error) {
	err = s.Store.Read(ctx, func(tx *store.Tx) error {
		rows, err := store.ActualLRPs.Troubled(tx)
		if err != nil {
			return err
		}
		all := sort(rows, rules, now)
		names, err := processNames(tx, all)
		if err != nil {
			return err
		}
		found = s.describe(all, names)
		return nil
	})
	return found, err
}

// sort puts instances together by rule and process.
func sort(rows []*lrp.Actual, rules map[string]Rule, now time.Time) (all []*troubled) {
	of := map[key]*troubled{}
	for _, a := range rows {
		rule := ""
		switch {
		case a.Stopping:
		case a.CrashCount >= int(rules[AppCrashing].Threshold) && (a.State != lrp.Running || now.Sub(a.Since) < recovered):
			rule = AppCrashing
		case a.State == lrp.Unclaimed && a.PlacementError != "":
			rule = AppUnplaced
		case a.State == lrp.Running && !a.Ready && a.Role != lrp.Passive:
			rule = AppUnhealthy
		}
		if rule == "" {
			continue
		}
		process := a.ProcessGUID
		if a.Domain == lrp.DomainApps {
			process = desire.CFProcess(process)
		}
		k := key{rule, process}
		if of[k] == nil {
			of[k] = &troubled{rule: rule, process: process}
			all = append(all, of[k])
		}
		of[k].actuals = append(of[k].actuals, a)
	}
	return all
}

// processName is what a process is called, and of whom it is.
type processName struct {
	name, space string
	app         store.AppName
	process     *cf.Process // nil: it is not an app's
}

// describe makes findings, of each rule and space at most so many.
func (s *appSource) describe(all []*troubled, names map[string]processName) (found []Finding) {
	seen, more, said := map[key]int{}, map[key]int{}, map[string]saying{}
	for _, t := range all {
		n, known := names[t.process]
		if !known {
			continue // it was deleted
		}
		k := key{t.rule, n.space}
		if seen[k]++; seen[k] > maxOfSpace {
			more[k]++
			continue
		}
		found = append(found, s.finding(t, n, said))
	}
	for _, k := range slices.SortedFunc(maps.Keys(more), func(a, b key) int { return strings.Compare(a.rule+a.subject, b.rule+b.subject) }) {
		found = append(found, Finding{Rule: k.rule, Subject: "space " + k.subject, Name: k.subject, Text: fmt.Sprintf("The same holds for more than %d processes of the space.", maxOfSpace)})
	}
	s.said = said
	return found
}

func (s *appSource) finding(t *troubled, n processName, said map[string]saying) Finding {
	first := t.actuals[0]
	f := Finding{Rule: t.rule, Subject: t.process, Name: n.name}
	if n.process != nil {
		f.Mend = fmt.Sprintf("sudo cupola app why -o %s -s %s %s", quoted(n.app.Org), quoted(n.app.Space), quoted(n.app.App))
	}
	which := fmt.Sprintf("Instance %d", first.Index)
	if len(t.actuals) > 1 {
		which = fmt.Sprintf("Instance %d, and %d more,", first.Index, len(t.actuals)-1)
	}
	switch t.rule {
	case AppCrashing:
		f.Text = which + " crashes again and again: " + s.why(t, n, said)
	case AppUnplaced:
		f.Text = which + " cannot be placed: " + first.PlacementError
	case AppUnhealthy:
		f.Text = which + " gets no requests: the readiness check fails since " + first.Since.UTC().Format(time.RFC3339) + "."
	}
	return f
}

// why reads the log of a process only if it crashed since the last time.
func (s *appSource) why(t *troubled, n processName, said map[string]saying) string {
	crashes := 0
	for _, a := range t.actuals {
		crashes += a.CrashCount
	}
	old, is := s.said[t.process]
	if !is || old.crashes != crashes {
		old = saying{crashes, t.actuals[0].CrashReason}
		if n.process != nil {
			old.text = s.WhyCrashed(n.process)(t.actuals[0])
		}
	}
	said[t.process] = old
	return old.text
}

// processNames are the names of processes, by GUID. Deleted ones have none.
func processNames(tx *store.Tx, all []*troubled) (map[string]processName, error) {
	names, guids, apps := map[string]processName{}, []string{}, []string{}
	for _, t := range all {
		if a := t.actuals[0]; a.Domain != lrp.DomainApps {
			names[t.process] = processName{name: a.Domain + " " + t.process, space: a.Domain}
			continue
		}
		guids = append(guids, t.process)
	}
	if len(guids) == 0 {
		return names, nil
	}
	processes, err := store.Processes.By(tx, "guids", guids...)
	if err != nil {
		return nil, err
	}
	for _, p := range processes {
		apps = append(apps, p.AppGUID)
	}
	of, err := tx.AppNames(apps)
	for _, p := range processes {
		if app, is := of[p.AppGUID]; is {
			names[p.GUID] = processName{app.String() + " (" + p.Type + ")", app.Org + "/" + app.Space, app, p}
		}
	}
	return names, err
}

// plain are the words that mean themselves to a shell.
var plain = pattern.Lazy(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// quoted is a word for a shell: users choose names, and operators copy commands.
func quoted(word string) string {
	if plain().MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(strings.Map(printed, word), "'", `'\''`) + "'"
}
