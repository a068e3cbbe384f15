package variables

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Request is what Generate works from.
type Request struct {
	Declared []Declared
	Existing map[string]Value // those that users gave too
	Rotate   []string         // names that are made anew whatever their mode is
	Now      time.Time
	Rand     io.Reader // for passwords and serial numbers
}

// Generate returns the values of all declared variables. One that exists is
// kept unless it is to be rotated, its mode wants it made anew, or the one that
// signs it has become another. What a user gave is made anew by rotation alone.
func Generate(ctx context.Context, r Request) (map[string]Value, error) {
	order, err := Order(r.Declared)
	if err != nil {
		return nil, err
	}
	g := &generator{Request: r, made: map[string]Value{}}
	for _, d := range order {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		v, err := g.value(d)
		if err != nil {
			return nil, fmt.Errorf("variable %q: %w", d.Name, err)
		}
		g.made[d.Name] = v
	}
	return g.made, nil
}

type generator struct {
	Request
	made map[string]Value
}

func (g *generator) value(d Declared) (Value, error) {
	if had, ok := g.Existing[d.Name]; ok && g.keeps(d, had) {
		return had, nil
	}
	fields, err := g.make(d)
	return Value{Fields: fields, Made: d.Digest()}, err
}

// keeps tells whether a value that exists stays.
func (g *generator) keeps(d Declared, had Value) bool {
	switch {
	case slices.Contains(g.Rotate, d.Name):
		return false
	case had.Made == "":
		return true
	case d.Mode == Overwrite, d.Mode == Converge && had.Made != d.Digest():
		return false
	}
	return !g.signerChanged(d, had)
}

// signerChanged tells whether what signs a certificate is another than when it
// was made: nobody who trusts the one trusts the other.
func (g *generator) signerChanged(d Declared, had Value) bool {
	if d.Type != Certificate || d.Options.CA == "" {
		return false
	}
	now, ok := g.signer(d.Options.CA)
	before, existed := g.Existing[d.Options.CA]
	return ok && existed && !now.same(before) && had.Fields["ca"] != now.Fields["certificate"]
}

// signer is the value of a CA: one that was made or kept before, or was given.
func (g *generator) signer(name string) (Value, bool) {
	if v, ok := g.made[name]; ok {
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
		return rsaPair(d.Options)
	case SSH:
		return sshPair(d.Options)
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
