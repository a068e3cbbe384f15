package variables

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"cupola/runtime/fault"
	"cupola/runtime/suggest"
)

// Request is what Generate works from.
type Request struct {
	Declared []Declared
	Existing map[string]Value // those that users gave too
	Rotate   []string         // names that are made again whatever their mode is
	Now      time.Time
	Rand     io.Reader // for passwords and serial numbers
}

// Generate returns the values of all declared variables: it generates those in
// toGenerate and keeps the others.
func Generate(ctx context.Context, r Request) (map[string]Value, error) {
	order, err := Order(r.Declared)
	if err != nil {
		return nil, err
	}
	if err := CheckRotate(order, r.Rotate); err != nil {
		return nil, err
	}
	generated := r.toGenerate(order)
	keys, err := newKeys(ctx, generated)
	if err != nil {
		return nil, err
	}
	g := &generator{Request: r, keys: keys, values: make(map[string]Value, len(order))}
	for _, d := range order {
		if _, ok := generated[d.Name]; !ok {
			g.values[d.Name] = r.Existing[d.Name]
			continue
		}
		fields, err := g.make(d)
		if err != nil {
			return nil, fmt.Errorf("variable %q: %w", d.Name, err)
		}
		g.values[d.Name] = Value{Fields: fields, Made: d.digest()}
	}
	return g.values, nil
}

// CheckRotate returns an error that names unknown variables in rotate.
func CheckRotate(declared []Declared, rotate []string) error {
	names := make([]string, len(declared))
	for i, d := range declared {
		names[i] = d.Name
	}
	var faults []error
	for _, name := range rotate {
		if !slices.Contains(names, name) {
			faults = append(faults, fmt.Errorf("cannot rotate variable %q: it is not declared%s", name, suggest.Hint(name, names)))
		}
	}
	return errors.Join(faults...)
}

// toGenerate returns the variables to generate: those without a value, those to
// rotate, those whose mode requires it, and those signed by one of them. Users'
// values are replaced only by rotation.
func (r Request) toGenerate(order []Declared) map[string]Declared {
	rotate := make(map[string]bool, len(r.Rotate))
	for _, name := range r.Rotate {
		rotate[name] = true
	}
	all := map[string]Declared{}
	for _, d := range order {
		had, exists := r.Existing[d.Name]
		_, newSigner := all[d.Options.CA]
		if !exists || rotate[d.Name] || had.Made != "" && (newSigner || r.unlike(d, had)) {
			all[d.Name] = d
		}
	}
	return all
}

// unlike reports whether the mode of a variable wants another value than it has.
func (r Request) unlike(d Declared, had Value) bool {
	if d.Mode != Converge {
		return d.Mode == Overwrite
	}
	ca, ok := r.Existing[d.Options.CA]
	return had.Made != d.digest() || ok && had.Fields["ca"] != ca.Fields["certificate"]
}

// newKeys are the keys of all variables that have one, made on all processors:
// nothing else here takes time.
func newKeys(ctx context.Context, of map[string]Declared) (map[string]*rsa.PrivateKey, error) {
	group, ctx := fault.NewGroup(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	var mu sync.Mutex
	keys := make(map[string]*rsa.PrivateKey, len(of))
	for name, d := range of {
		if d.Type == Password {
			continue
		}
		group.Go(fault.ErrFunc("variables", func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			key, err := newKey(d.Options)
			if err != nil {
				return fmt.Errorf("variable %q: %w", name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			keys[name] = key
			return nil
		}))
	}
	return keys, group.Wait()
}

type generator struct {
	Request
	keys   map[string]*rsa.PrivateKey // of those that are made
	values map[string]Value
}

// signer is the value of a CA: a declared one, or one that was given.
func (g *generator) signer(name string) (Value, bool) {
	if v, ok := g.values[name]; ok {
		return v, true
	}
	v, ok := g.Existing[name]
	return v, ok
}

func (g *generator) make(d Declared) (map[string]string, error) {
	switch d.Type {
	case Password:
		p, err := password(d.Options, g.Rand)
		return map[string]string{"password": p}, err
	case Certificate:
		return g.certificate(d)
	case RSA:
		return rsaPair(g.keys[d.Name])
	case SSH:
		return sshPair(g.keys[d.Name], d.Options)
	}
	return nil, fmt.Errorf("unsupported variable type %q", d.Type)
}

// Order sorts variables so that what signs comes before what it signs, and
// otherwise leaves them as they are. Those that sign each other are an error.
func Order(declared []Declared) ([]Declared, error) {
	o := &ordering{byName: make(map[string]Declared, len(declared)), state: map[string]int{}}
	for _, d := range declared {
		if _, ok := o.byName[d.Name]; ok {
			return nil, fmt.Errorf("the variable %q is declared twice", d.Name)
		}
		o.byName[d.Name] = d
	}
	for _, d := range declared {
		if err := o.visit(d); err != nil {
			return nil, err
		}
	}
	return o.order, nil
}

// ordering is a walk from what is signed to what signs.
type ordering struct {
	byName map[string]Declared
	state  map[string]int
	order  []Declared
}

const (
	visiting = 1
	visited  = 2
)

// visit follows a chain of signers without recursion: it may be long.
func (o *ordering) visit(d Declared) error {
	var chain []Declared
	for {
		switch o.state[d.Name] {
		case visiting:
			return fmt.Errorf("Detected recursion: %s", cycle(chain, d)) //nolint:revive // the bosh CLI's words
		case visited:
		default:
			o.state[d.Name] = visiting
			chain = append(chain, d)
			if ca, ok := o.byName[d.Options.CA]; ok && d.Type == Certificate {
				d = ca
				continue
			}
		}
		break
	}
	for _, c := range slices.Backward(chain) {
		o.state[c.Name] = visited
		o.order = append(o.order, c)
	}
	return nil
}

// cycle names those that sign each other.
func cycle(chain []Declared, d Declared) string {
	i := slices.IndexFunc(chain, func(c Declared) bool { return c.Name == d.Name })
	var names []string
	for _, c := range chain[i:] {
		names = append(names, c.Name)
	}
	return strings.Join(append(names, d.Name), " is signed by ")
}
