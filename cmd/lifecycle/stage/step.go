package stage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"cupola/rootfs/unpack"
	"cupola/runtime/contract"
)

// do does one step.
func (s *stager) do(ctx context.Context, step contract.StagingStep) error {
	if ctx.Err() != nil {
		return errCancelled
	}
	switch {
	case step.Run != nil:
		return s.process(ctx, *step.Run)
	case step.Download != nil:
		return s.download(ctx, *step.Download)
	case step.Upload != nil:
		return s.upload(ctx, *step.Upload)
	case step.Timeout != nil:
		return s.within(ctx, *step.Timeout)
	case step.Progress != nil:
		return s.progress(ctx, *step.Progress)
	case step.Try != nil:
		if err := s.do(ctx, *step.Try); err != nil && ctx.Err() != nil {
			return errCancelled
		}
		return nil
	case step.Parallel != nil:
		return s.parallel(ctx, step.Parallel)
	}
	for _, inner := range step.Serial {
		if err := s.do(ctx, inner); err != nil {
			return err
		}
	}
	return nil
}

// parallel waits for all, also where one fails.
func (s *stager) parallel(ctx context.Context, all []contract.StagingStep) error {
	ends := make(chan error)
	for _, step := range all {
		go func() { ends <- s.do(ctx, step) }()
	}
	var failed failure
	var cancelled error
	for range all {
		err := <-ends
		if f, ok := errors.AsType[failure](err); ok {
			failed.reasons, failed.code = append(failed.reasons, f.reasons...), max(failed.code, f.code)
		} else if err != nil {
			cancelled = err
		}
	}
	if len(failed.reasons) > 0 {
		return failed
	}
	return cancelled
}

func (s *stager) within(ctx context.Context, t contract.StagingTimeout) error {
	within, cancel := context.WithTimeout(ctx, t.After)
	defer cancel()
	err := s.do(within, t.Step)
	if err == nil || ctx.Err() != nil || within.Err() == nil {
		return err
	}
	f := failure{reasons: []string{"exceeded " + t.After.String() + " timeout"}}
	if inner, ok := errors.AsType[failure](err); ok {
		f.reasons = append(f.reasons, inner.reasons...)
	}
	return f
}

func (s *stager) progress(ctx context.Context, p contract.StagingProgress) error {
	if p.Start != "" {
		s.print("%s", p.Start)
	}
	err := s.do(ctx, p.Step)
	switch {
	case err == nil && p.Success != "":
		s.print("%s", p.Success)
	case err != nil && p.FailurePrefix != "":
		reasons := ""
		if f, ok := errors.AsType[failure](err); ok {
			reasons = f.Error()
		}
		s.print("%s", strings.TrimSuffix(p.FailurePrefix+": "+reasons, ": "))
	}
	return err
}

// endTime is how long a process has to end when it was asked to.
const endTime = 10 * time.Second

// process runs a process to its end.
func (s *stager) process(ctx context.Context, r contract.StagingRun) error {
	cmd := exec.CommandContext(ctx, r.Path, r.Args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = r.Dir, os.Stdout, os.Stderr, environment(s.plan.Env, r.Env)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endTime
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return failure{reasons: []string{"failed to run container: " + err.Error()}}
	}
	code := exitCode(cmd.ProcessState)
	s.print("Exit status %d", code)
	switch {
	case ctx.Err() != nil:
		return errCancelled
	case code != 0:
		return failure{reasons: []string{fmt.Sprintf("%s: Exited with status %d", s.plan.Source, code)}, code: code}
	}
	return nil
}

// exitCode is a process' as a shell tells it.
func exitCode(p *os.ProcessState) int {
	if w, ok := p.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return p.ExitCode()
}

// environment is the container's, and over it what the plan has: the last word wins.
func environment(lists ...[]contract.Variable) []string {
	env := os.Environ()
	at := map[string]int{}
	for n, pair := range env {
		name, _, _ := strings.Cut(pair, "=")
		at[name] = n
	}
	for _, list := range lists {
		for _, v := range list {
			pair := v.Name + "=" + v.Value
			if n, ok := at[v.Name]; ok {
				env[n] = pair
				continue
			}
			at[v.Name] = len(env)
			env = append(env, pair)
		}
	}
	return env
}

// download unpacks an input.
func (s *stager) download(ctx context.Context, d contract.StagingDownload) error {
	if d.Artifact != "" {
		s.print("Downloading %s...", d.Artifact)
	}
	archive, err := s.client.input(ctx, d.Input)
	if err != nil {
		return s.moan(ctx, d.Artifact, strings.Join(strings.Fields("Downloading "+d.Artifact+" failed"), " "), err)
	}
	defer func() { _ = archive.Close() }() // it was only read
	size, err := unpacked(ctx, archive, d)
	if err != nil {
		if ctx.Err() != nil {
			return errCancelled
		}
		text := strings.Join(strings.Fields("Copying "+d.Artifact+" into the container failed:"), " ") + " " + err.Error()
		return s.moan(ctx, d.Artifact, text, nil)
	}
	if d.Artifact != "" {
		s.print("Downloaded %s (%s)", d.Artifact, contract.ByteSize(size))
	}
	return nil
}

// moan logs what went wrong with a file that has a name. cause is for the log alone.
func (s *stager) moan(ctx context.Context, artifact, text string, cause error) error {
	switch {
	case ctx.Err() != nil:
		return errCancelled
	case errors.Is(cause, errGone):
		return errLost
	case artifact != "" && cause != nil:
		s.print("%s: %v", text, cause)
	case artifact != "":
		s.print("%s", text)
	}
	return failure{reasons: []string{text}}
}

// unpacked unpacks an archive into a directory, which is made, and returns the archive's size.
func unpacked(ctx context.Context, archive *os.File, d contract.StagingDownload) (int64, error) {
	if err := os.MkdirAll(d.To, 0o755); err != nil {
		return 0, err
	}
	dir, err := os.Open(d.To)
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	section, err := unpack.Section(archive)
	if err != nil {
		return 0, err
	}
	_, err = unpack.Into(ctx, dir, section, unpack.Options{Image: d.Image})
	if err != nil {
		err = fmt.Errorf("extract into %s: %w", d.To, err)
	}
	return section.Size(), err
}

// upload sends a file.
func (s *stager) upload(ctx context.Context, u contract.StagingUpload) error {
	if u.Artifact != "" {
		s.print("Uploading %s...", u.Artifact)
	}
	err := s.send(ctx, u.From, u.Output)
	if err == nil {
		if info, statErr := os.Stat(u.From); statErr == nil && u.Artifact != "" {
			s.print("Uploaded %s (%s)", u.Artifact, contract.ByteSize(info.Size()))
		}
		return nil
	}
	text := "Failed to upload payload"
	if errors.Is(err, errNotThere) {
		text = errNotThere.Error()
	}
	if u.Artifact != "" {
		text += " for " + u.Artifact
	}
	if refused, ok := errors.AsType[refusal](err); ok && ctx.Err() == nil && u.Artifact != "" {
		s.print("%s: %s", text, refused.Error())
		return failure{reasons: []string{text}}
	}
	return s.moan(ctx, u.Artifact, text, nil)
}

// errNotThere says that there is no such file.
var errNotThere = errors.New("Failed to establish stream from container") //nolint:staticcheck // Diego's words

// send sends a regular file.
func (s *stager) send(ctx context.Context, from, output string) error {
	f, err := os.OpenFile(from, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("%w: %v", errNotThere, err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Mode()&fs.ModeType != 0 {
		return errNotThere
	}
	return s.client.output(ctx, output, f)
}
