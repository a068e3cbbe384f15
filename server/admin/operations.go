package admin

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"

	"cupola/rootfs/image"
	"cupola/server/admin/backup"
	"cupola/server/admin/database"
	"cupola/server/admin/disk"
	"cupola/server/admin/leak"
	"cupola/server/admin/offsite"
	"cupola/server/admin/stack"
	"cupola/server/admin/support"
	"cupola/server/cells"
	"cupola/server/databroker"
	"cupola/server/datadir"
	"cupola/server/doctor"
	"cupola/server/uaa"
)

// None is a request, or an answer, that says nothing.
type None struct{}

// RotateRequest asks for a new key that signs tokens.
type RotateRequest struct {
	Forget bool `help:"Revoke all tokens signed with other keys at once: all users must log in again. For compromised keys."`
}

// OpenRequest asks for an address of the web console that logs a browser in.
type OpenRequest struct {
	User string `default:"admin" help:"The user to log in as."`
}

// Inviter returns such an address, which is good once and for a minute.
type Inviter func(ctx context.Context, user string) (url string, err error)

// The operations, by the names of their commands.
var (
	StackList = Operation[*stack.Library, None, stack.Listing]{about{"stack list", "List the stacks and the images."},
		(*opener).stacks, (*Daemon).stacks, question((*stack.Library).Listing)}
	StackBuild = Operation[*stack.Library, stack.BuildRequest, stack.Info]{about{"stack build", "Build a stack from a distribution's signed packages."},
		(*opener).stacks, (*Daemon).stacks, (*stack.Library).Build}
	StackImport = Operation[*stack.Library, stack.ImportRequest, stack.Info]{about{"stack import", "Import a root filesystem's tar, an OCI image layout or the output of 'docker save'."},
		(*opener).stacks, (*Daemon).stacks, (*stack.Library).Import}
	StackPull = Operation[*stack.Library, stack.PullRequest, stack.Info]{about{"stack pull", "Pull an image from a registry, for apps that name it or as a stack."},
		(*opener).stacks, (*Daemon).stacks, (*stack.Library).Pull}
	StackInspect = Operation[*stack.Library, stack.NameRequest, stack.Detail]{about{"stack inspect", "Show a stack or an image, and what uses it."},
		(*opener).stacks, (*Daemon).stacks, quick((*stack.Library).Inspect)}
	StackExport = Operation[*stack.Library, stack.ExportRequest, stack.Info]{about{"stack export", "Export a pulled image as an OCI image layout, or another stack as a tar."},
		(*opener).stacks, (*Daemon).stacks, (*stack.Library).Export}
	StackGC = Operation[*stack.Library, stack.GCRequest, image.Removed]{about{"stack gc", "Remove unused images."},
		(*opener).stacks, (*Daemon).stacks, quick((*stack.Library).Collect)}
	StackRemove = Operation[*stack.Library, stack.NameRequest, image.Removed]{about{"stack rm", "Remove an unused stack or image."},
		(*opener).stacks, (*Daemon).stacks, quick((*stack.Library).Remove)}
	cellList = Operation[func() cells.Uses, None, cells.Uses]{about{"cells list", "List the cells: tags, root filesystems, memory, disk and containers."},
		nil, (*Daemon).cells, question(func(list func() cells.Uses, _ context.Context) (cells.Uses, error) { return list(), nil })}
	KeyList = Operation[*uaa.Keys, None, []uaa.Key]{about{"token-keys list", "List the keys that verify tokens."},
		nil, (*Daemon).keys, question(func(keys *uaa.Keys, _ context.Context) ([]uaa.Key, error) { return keys.List(), nil })}
	KeyRotate = Operation[*uaa.Keys, RotateRequest, uaa.Key]{about{"token-keys rotate", "Sign with a new key. Tokens signed with other keys stay valid until they expire."},
		nil, (*Daemon).keys, quick(func(keys *uaa.Keys, ctx context.Context, in RotateRequest) (uaa.Key, error) {
			return keys.Rotate(ctx, in.Forget)
		})}
	Open = Operation[Inviter, OpenRequest, string]{about{"open", "Open the web console in a browser, logged in."},
		nil, (*Daemon).inviter, quick(func(invite Inviter, ctx context.Context, in OpenRequest) (string, error) { return invite(ctx, in.User) })}
	BrokerPrepare = Operation[*stack.Library, stack.PrepareRequest, stack.Prepared]{about{"broker prepare", "Build or pull the stacks that the built-in service broker's services run on."},
		(*opener).stacks, (*Daemon).stacks, (*stack.Library).Prepare}
	BrokerStatus = Operation[databroker.Status, None, databroker.Report]{about{"broker status", "Show the built-in service broker's services and instances."},
		(*opener).dataServices, (*Daemon).dataServices, question(databroker.Status.Report)}
	CheckDatabase = Operation[*database.Keeper, None, None]{about{"verify", "Verify every byte of a backup."},
		(*opener).database, (*Daemon).database,
		question(func(k *database.Keeper, ctx context.Context) (None, error) { return None{}, k.Check(ctx) })}
	leaks = Operation[leak.Finder, None, []string]{about{"doctor", "Check this machine and suggest fixes."},
		(*opener).leaks, (*Daemon).leaks, question(leak.Finder.Find)}
	Backup = Transfer[*backup.Maker, backup.Options]{about{"backup", "Back up a daemon's data to one file; the daemon may run meanwhile."},
		(*opener).backup, (*Daemon).backup, (*backup.Maker).Write}
	DiskList = Operation[*disk.Keeper, None, disk.Usage]{about{"disk list", "List what takes room in the data directory, and how much of it can be reclaimed."},
		(*opener).disk, (*Daemon).disk, question((*disk.Keeper).Usage)}
	DiskReclaim = Operation[*disk.Keeper, disk.ReclaimRequest, []disk.Reclaimed]{about{"disk reclaim", "Delete caches that nothing uses, the longest unused first."},
		(*opener).disk, (*Daemon).disk, quick((*disk.Keeper).Reclaim)}
	SupportBundle = Operation[*support.Source, None, []support.File]{about{"support-bundle", "Collect what helps to find out why a daemon does not work, without secrets."},
		(*opener).support, (*Daemon).support, question((*support.Source).Collect)}
	BackupsStatus = Operation[*offsite.Keeper, None, []offsite.Status]{about{"backups status", "Show the last and the next backup away from this machine."},
		nil, (*Daemon).offsite, question((*offsite.Keeper).Statuses)}
	BackupsRun = Operation[*offsite.Keeper, offsite.RunRequest, []offsite.Status]{about{"backups run", "Make a backup away from this machine now."},
		nil, (*Daemon).offsite, (*offsite.Keeper).RunNow}
)

// Listed is an operation of the table, whatever its types are.
type Listed interface {
	Describe() (name, help string)
	path() string
	handler(*Daemon) http.Handler
}

// Table lists all operations.
func Table() []Listed {
	return []Listed{StackList, StackBuild, StackImport, StackPull, StackInspect, StackExport, StackGC, StackRemove,
		cellList, KeyList, KeyRotate, Open, BrokerPrepare, BrokerStatus, CheckDatabase, leaks, Backup, DiskList, DiskReclaim, SupportBundle, BackupsStatus, BackupsRun}
}

// FindLeaks lists what is in the kernel or on disk and belongs to nothing: of the
// target, if its data directory is there, what is of none of its containers; of
// other daemons of the machine, what they left when they ended.
func FindLeaks(ctx context.Context, t Target) ([]doctor.Leak, error) {
	if err := NeedRoot(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(t.DataDir); errors.Is(err, fs.ErrNotExist) {
		return doctor.Leaks(ctx, datadir.OwnerOf)
	}
	lines, err := leaks.Do(ctx, t, None{}, nil)
	if err != nil {
		return nil, err
	}
	var leaks []doctor.Leak
	for _, l := range lines {
		leaks = append(leaks, doctor.Leak{Kind: "container", Name: l, Fix: "sudo cupola serve --data-dir " + t.DataDir + "   # a start clears away what is half made"})
	}
	others, err := doctor.Leaks(ctx, datadir.OwnerOf, t.DataDir)
	return append(leaks, others...), err
}
