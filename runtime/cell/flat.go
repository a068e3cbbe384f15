package cell

import (
	"errors"
	"strings"
	"time"

	"cupola/runtime/lrp"
)

// flat is what a container does, where that is one process with others beside
// it, archives before it and files to keep after it.
type flat struct {
	Run      lrp.Run
	Sidecars []lrp.Run
	Inputs   []input
	Outputs  []output1
	Timeout  time.Duration // 0: the action may run for ever
}

type input struct {
	lrp.Download
	Optional bool
}

type output1 struct {
	Name, Path string
	Optional   bool
}

var errAction = errors.New("action is not supported")

// flatten reads an action that has that shape.
func flatten(setup, a lrp.Action) (flat, error) {
	var f flat
	if err := f.add(setup, false); err != nil {
		return f, err
	}
	if a.Timeout != nil {
		f.Timeout, a = a.Timeout.After, a.Timeout.Action
	}
	return f, f.add(a, false)
}

func (f *flat) add(a lrp.Action, optional bool) error {
	switch {
	case a.Run != nil && f.Run.Path == "":
		f.Run = *a.Run
	case a.Download != nil:
		f.Inputs = append(f.Inputs, input{*a.Download, optional})
	case a.Upload != nil:
		f.Outputs = append(f.Outputs, output1{strings.TrimPrefix(a.Upload.To, lrp.BlobScheme), a.Upload.From, optional})
	case a.Codependent != nil && f.Run.Path == "" && len(a.Codependent.Actions) > 0:
		for _, r := range a.Runs() {
			f.Sidecars = append(f.Sidecars, *r)
		}
		f.Run, f.Sidecars = f.Sidecars[0], f.Sidecars[1:]
	case a.Serial != nil, a.Parallel != nil, a.Try != nil:
		for _, inner := range a.Inner() {
			if err := f.add(inner, optional || a.Try != nil); err != nil {
				return err
			}
		}
	case !a.IsZero():
		return errAction
	}
	return nil
}
