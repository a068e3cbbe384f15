package gitpush

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"cupola/runtime/gitpack"
)

// maxPack bounds a push, in bytes: Cloud Controller's packages.max_package_size.
const maxPack = 1 << 30

var limits = gitpack.Limits{Objects: gitpack.MaxObjects, Chain: gitpack.MaxChain, All: gitpack.MaxUnpacks * maxPack}

// receive takes a push over HTTP.
func (f *Face) receive(w http.ResponseWriter, r *http.Request, t *target) error {
	if r.Header.Get("Content-Encoding") != "" {
		return refusef(http.StatusUnsupportedMediaType, "Compressed requests are not accepted.")
	}
	body := bufio.NewReader(http.MaxBytesReader(w, r.Body, maxPack))
	o, err := readOrder(body)
	if err != nil {
		return refusef(http.StatusBadRequest, "%s", err)
	}
	w.Header().Set("Content-Type", "application/x-"+receivePack+"-result")
	w.Header().Set("Cache-Control", "no-cache")
	if len(o.updates) == 0 { // git asks first whether it is let in
		return nil
	}
	p := &push{Face: f, target: t, order: o}
	return p.run(r.Context(), func(to io.Writer) error {
		_, err := io.Copy(to, body)
		return err
	}, w)
}

// run receives the pack, which copyPack copies, does what the push wants and reports.
// If it returns a refusal, nothing was written to w.
func (p *push) run(ctx context.Context, copyPack func(to io.Writer) error, w io.Writer) error {
	end, ok := p.begin(p.target)
	if !ok {
		return refusef(http.StatusConflict, "Another push to %s is under way: wait for its end.", p.name)
	}
	defer end()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.Stop, func() { cancel(errors.New("the daemon stops: push again when it runs")) })()
	defer p.close()
	if err := p.open(ctx, copyPack); err != nil {
		return err
	}
	p.out = newOutput(w, p.sideband)
	results := p.apply(ctx)
	return p.out.report(p.report, results)
}

// push is one push to an app.
type push struct {
	*Face
	*target
	*order
	out *output

	dir    string // with what the push has sent
	sent   *filesystem.Storage
	before *filesystem.Storage // what was kept; nil for nothing
}

func (p *push) close() {
	if p.dir != "" {
		if err := os.RemoveAll(p.dir); err != nil {
			p.Log.Error("what a push sent is not deleted", "err", err)
		}
	}
}

// open receives the pack, if there is one, into a repository next to the app's.
func (p *push) open(ctx context.Context, copyPack func(io.Writer) error) (err error) {
	if p.before, err = p.kept(p.app); err != nil {
		return err
	}
	turn, err := p.unpacks.Acquire(ctx, p.user)
	if err != nil {
		return err
	}
	defer turn.Release()
	if p.dir, err = os.MkdirTemp(p.Dir, incoming); err != nil {
		return err
	}
	if p.sent, err = gitpack.Open(p.dir); err != nil || !p.packs() {
		return err
	}
	return p.unpack(ctx, copyPack)
}

// unpack stores a pack once its objects have been measured.
func (p *push) unpack(ctx context.Context, copyPack func(io.Writer) error) error {
	file, err := os.CreateTemp(p.dir, "received-")
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(file.Close(), os.Remove(file.Name())) }() // with the directory, at the latest
	err = copyPack(file)
	if over, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return refusef(http.StatusRequestEntityTooLarge, "The push is larger than %d bytes.", over.Limit)
	}
	if err != nil {
		return refusef(http.StatusBadRequest, "The push could not be read: %s", err)
	}
	if n, err := file.Seek(0, io.SeekCurrent); err != nil || n == 0 {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := limits.Check(ctx, file); err != nil {
		return refusef(http.StatusUnprocessableEntity, "The push is not accepted: %s.", err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := packfile.UpdateObjectStorage(p.sent, file); err != nil && !errors.Is(err, packfile.ErrEmptyPackfile) {
		return refusef(http.StatusUnprocessableEntity, "The push cannot be read: %s.", err)
	}
	return nil
}

// apply does what a push wants, and returns what became of each of its refs.
func (p *push) apply(ctx context.Context) (results []result) {
	have, deployed := p.refs(p.app), false
	var done []update
	for _, u := range p.updates {
		reason := u.fault()
		switch {
		case reason != "":
		case u.old != have[u.name.String()]:
			reason = "another push has changed it: push again"
		case u.deploys() && deployed:
			reason = "a push deploys one branch: push main and master one after the other"
		default:
			reason = p.one(ctx, u)
			deployed = deployed || u.deploys()
		}
		if reason == "" {
			done = append(done, u)
		}
		results = append(results, result{u.name.String(), reason})
	}
	if err := p.remember(done); err != nil {
		p.Log.Error("a push is not kept", "app", p.app, "err", err)
		p.out.line("This push could not be kept: the next one sends all files.")
	}
	return results
}

// one does what a push wants of one ref, and says why it does not; "" if it does.
func (p *push) one(ctx context.Context, u update) string {
	switch {
	case u.deletes():
		if u.name == plumbing.Main || u.name == plumbing.Master {
			p.out.line("%s is deleted here. The app goes on running: delete it with cf delete %s.", u.name.Short(), p.name)
		}
		return ""
	case u.deploys():
		return p.deployed(ctx, u)
	case p.app == "":
		return fmt.Sprintf("there is no app %s yet: push main first", p.name)
	}
	if err := p.has(u.new); err != nil {
		return err.Error()
	}
	p.out.line("%s is kept and not deployed: only main and master are. To deploy it: git push REMOTE %s:main", u.name.Short(), u.name.Short())
	return ""
}

func (p *push) objects() objects { return objects{p.sent, p.before} }

func (p *push) has(h plumbing.Hash) error {
	_, err := p.objects().EncodedObject(plumbing.AnyObject, h)
	return p.complete(err)
}

// complete turns the error of an object that is missing into one that the next push
// does not meet: without what was kept, git sends all.
func (p *push) complete(err error) error {
	if !errors.Is(err, plumbing.ErrObjectNotFound) || p.app == "" {
		return err
	}
	return errors.Join(errors.New("objects are missing that an earlier push should have sent: push again, and all of them are sent"), p.forget(p.app))
}

// deployed deploys a commit, and says why it does not; "" if it does.
func (p *push) deployed(ctx context.Context, u update) string {
	url, err := p.deploy(ctx, u.new)
	if err == nil {
		p.out.line("")
		p.out.line("%s", url)
		return ""
	}
	reason := p.complete(err).Error()
	p.out.line("")
	for line := range strings.Lines(reason) {
		p.out.line("%s", line)
	}
	return reason
}

// remember keeps what was pushed for the next push. A shallow clone sends commits
// whose parents are missing, on which no later pack may build.
func (p *push) remember(done []update) error {
	if len(done) == 0 || p.app == "" {
		return nil
	}
	if p.shallow {
		p.out.line("This push comes from a shallow clone and is not kept: the next one sends all files.")
		return p.forget(p.app)
	}
	kept, err := p.keep(p.app, p.dir, done)
	if err == nil && !kept {
		p.out.line("More than is kept of an app was pushed over time: what was kept is deleted, and the next push sends all files.")
	}
	return err
}
