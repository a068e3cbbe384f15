package cell

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"cupola/runtime/lrp"
)

// introduce returns the standard input of a process that may send signals to peers: a socket
// with a packet for each peer that runs; nil without peers. Signals go on when the daemon ends.
func (p *performer) introduce(ctx context.Context, peers []lrp.Peer) (*os.File, error) {
	if len(peers) == 0 {
		return nil, nil
	}
	here, there, err := socketPair(unix.SOCK_SEQPACKET)
	if err != nil {
		return nil, err
	}
	defer here.Close()
	for _, peer := range peers {
		socket, err := p.relay(ctx, peer.Key)
		if err != nil { // it may just have ended
			p.cell.cfg.Log.InfoContext(ctx, "process gets no signals of another one", "instance_guid", p.guid(), "process_guid", peer.Key.ProcessGUID, "err", err)
			continue
		}
		err = unix.Sendmsg(int(here.Fd()), []byte(peer.Name), unix.UnixRights(int(socket.Fd())), nil, unix.MSG_DONTWAIT)
		socket.Close()
		if err != nil {
			there.Close()
			return nil, fmt.Errorf("introduce %s: %w", peer.Name, err)
		}
	}
	return there, nil
}

// relay returns a socket: each byte that is written to it is the number of a signal for the process of a peer's action.
func (p *performer) relay(ctx context.Context, key lrp.Key) (*os.File, error) {
	peer := p.cell.find(key)
	if peer == nil || p.spec.Pod == "" || peer.spec.Pod != p.spec.Pod {
		return nil, errNotRunning
	}
	s := peer.step("action")
	if s.PID == 0 || s.Done {
		return nil, errNotRunning
	}
	here, there, err := socketPair(unix.SOCK_STREAM)
	if err != nil {
		return nil, err
	}
	defer there.Close()
	if err := p.cell.cfg.Containers.Relay(ctx, peer.guid(), s.PID, s.Ticks, peer.record().User.process(map[string]string{}), there); err != nil {
		here.Close()
		return nil, err
	}
	return here, nil
}

// find returns the container of an instance that runs, or nil.
func (c *Cell) find(key lrp.Key) *instance {
	for _, i := range c.all() {
		of := lrp.Key{ProcessGUID: i.spec.ProcessGUID, Index: i.spec.Index}
		phase := i.record().Phase
		if i.spec.Kind == lrp.KindInstance && of == key && (phase == lrp.PhaseStarting || phase == lrp.PhaseRunning) {
			return i
		}
	}
	return nil
}

func socketPair(kind int) (here, there *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make sockets for signals: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "signals"), os.NewFile(uintptr(fds[1]), "signals"), nil
}
