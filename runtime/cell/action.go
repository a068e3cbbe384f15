package cell

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"cupola/runtime/lrp"
)

// do does one action, the step at of the program. It returns a failure, or
// errCancelled when ctx has ended first; then nothing that it began runs any
// more, unless the daemon ends.
func (p *performer) do(ctx context.Context, at string, a lrp.Action, source string) error {
	if ctx.Err() != nil && !a.IsZero() && !p.under(at) {
		return errCancelled
	}
	switch {
	case a.Run != nil:
		return p.run(ctx, at, a.Run, source)
	case a.Download != nil:
		return p.download(ctx, at, a.Download, source)
	case a.Upload != nil:
		return p.upload(ctx, at, a.Upload, source)
	case a.Timeout != nil:
		return p.timeout(ctx, at, a.Timeout, source)
	case a.EmitProgress != nil:
		return p.emitProgress(ctx, at, a.EmitProgress, source)
	case a.Try != nil:
		return p.try(ctx, at, a.Try, source)
	case a.Parallel != nil:
		return p.parallel(ctx, at, a.Parallel, source)
	case a.Serial != nil:
		return p.serial(ctx, at, a.Serial, source)
	case a.Codependent != nil:
		return p.codependent(ctx, at, a.Codependent, source)
	}
	return nil
}

func (p *performer) serial(ctx context.Context, at string, g *lrp.Group, source string) error {
	source = cmp.Or(g.LogSource, source)
	for n, a := range g.Actions {
		if err := p.do(ctx, stepName(at, n), a, source); err != nil {
			return err
		}
	}
	return nil
}

// parallel waits for all, even if one fails, as Diego does.
func (p *performer) parallel(ctx context.Context, at string, g *lrp.Group, source string) error {
	var errs []error
	together(p.each(ctx, at, g, source), func(err error) { errs = append(errs, err) })
	return joined(errs)
}

// codependent ends all when one has ended, with or without a failure.
func (p *performer) codependent(ctx context.Context, at string, g *lrp.Group, source string) error {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	var errs []error
	ended := false // one, which was not cancelled
	together(p.each(within, at, g, source), func(err error) {
		if err == nil && !ended && ctx.Err() == nil {
			err = failure{codependent}
		}
		// What could not begin since the container's first process has ended may be
		// reported before that end.
		ended = ended || !errors.Is(err, errCancelled)
		errs = append(errs, err)
		p.endBegins()
		cancel()
	})
	return joined(errs)
}

// each does one of the actions of g.
func (p *performer) each(ctx context.Context, at string, g *lrp.Group, source string) []func() error {
	source = cmp.Or(g.LogSource, source)
	all := make([]func() error, len(g.Actions))
	for n, a := range g.Actions {
		all[n] = func() error { return p.do(ctx, stepName(at, n), a, source) }
	}
	return all
}

func (p *performer) timeout(ctx context.Context, at string, t *lrp.Timeout, source string) error {
	source = cmp.Or(t.LogSource, source)
	left := time.Until(p.began(at).Add(t.After))
	within, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	err := p.do(within, stepName(at, 0), t.Action, source)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		return append(failure{"exceeded " + t.After.String() + " timeout"}, reasonsOf(err)...)
	}
	return err
}

func (p *performer) try(ctx context.Context, at string, t *lrp.Try, source string) error {
	source = cmp.Or(t.LogSource, source)
	q := *p
	q.tentative = true
	err := q.do(ctx, stepName(at, 0), t.Action, source)
	if err != nil && ctx.Err() != nil {
		return errCancelled
	}
	return nil
}

func (p *performer) emitProgress(ctx context.Context, at string, e *lrp.EmitProgress, source string) error {
	source = cmp.Or(e.LogSource, source)
	if first := p.first(at); first && e.Start != "" {
		p.line(source, false, e.Start)
	}
	err := p.do(ctx, stepName(at, 0), e.Action, source)
	if p.life.Err() != nil || p.step(at).Done {
		return err
	}
	_ = p.done(at, nil) // the end of the action is that of the step
	reasons := append([]string{e.FailurePrefix}, failure(reasonsOf(err)).Error())
	switch {
	case err == nil && e.Success != "":
		p.line(source, false, e.Success)
	case err != nil && e.FailurePrefix != "":
		p.line(source, true, strings.TrimSuffix(strings.Join(reasons, ": "), ": "))
	}
	return err
}
