package container

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The process connector uses netlink, in the machine's byte order: a netlink
// header, a connector header, and struct proc_event: the kind of event, a CPU,
// a time, and the event's data.
const (
	eventAt   = 16 + 20
	eventData = eventAt + 16

	processIndex = 1          // CN_IDX_PROC, and CN_VAL_PROC
	listenEvents = 1          // PROC_CN_MCAST_LISTEN
	ignoreEvents = 2          // PROC_CN_MCAST_IGNORE
	ackEvent     = 0          // PROC_EVENT_NONE
	exitEvent    = 0x80000000 // PROC_EVENT_EXIT
)

// openConnector opens a socket that receives every exit on the machine.
func openConnector() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_CONNECTOR)
	if err != nil {
		return nil, fmt.Errorf("open process connector: %w", err)
	}
	if err := subscribe(fd); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("subscribe to process connector: %w", err)
	}
	return os.NewFile(uintptr(fd), "process connector"), nil
}

func subscribe(fd int) error {
	const buffer = 4 << 20 // some thousand exits
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer); err != nil {
		return err
	}
	if err := dropOtherEvents(fd); err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: processIndex}); err != nil {
		return err
	}
	if err := request(fd, listenEvents); err != nil {
		return err
	}
	return confirmed(fd)
}

// dropOtherEvents filters events other than exits in the kernel, so that they
// do not even wake this process.
func dropOtherEvents(fd int) error {
	var exit [4]byte
	binary.NativeEndian.PutUint32(exit[:], exitEvent)
	filter := []unix.SockFilter{
		load(eventAt),
		jump(unix.BPF_JEQ, binary.BigEndian.Uint32(exit[:]), 1, 0), // as filters read
		jump(unix.BPF_JEQ, ackEvent, 0, 1),
		ret(1 << 16),
		ret(0),
	}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]})
}

// request begins or ends the events.
func request(fd int, operation uint32) error {
	m := struct {
		Length             uint32
		Type, Flags        uint16
		Sequence, Port     uint32
		Index, Value       uint32
		Number, Answer     uint32
		Size, MessageFlags uint16
		Operation          uint32
	}{Type: unix.NLMSG_DONE, Index: processIndex, Value: processIndex, Size: 4, Operation: operation}
	m.Length = uint32(binary.Size(m))
	data, err := binary.Append(nil, binary.NativeEndian, m)
	if err != nil {
		return err
	}
	return unix.Sendto(fd, data, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
}

// confirmed returns nil if the kernel has agreed to tell. Its answer is there
// when the request was sent, but for one of another pid namespace: none.
func confirmed(fd int) error {
	buf := make([]byte, 4096)
	for {
		n, err := receive(fd, buf)
		if err != nil {
			return fmt.Errorf("await its answer: %w", err)
		}
		if n < eventData+4 || binary.NativeEndian.Uint32(buf[eventAt:]) != ackEvent {
			continue
		}
		if refused := binary.NativeEndian.Uint32(buf[eventData:]); refused != 0 {
			return unix.Errno(refused)
		}
		return nil
	}
}

// receive takes one message of the kernel's.
func receive(fd int, buf []byte) (int, error) {
	for {
		n, from, err := unix.Recvfrom(fd, buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if sender, ok := from.(*unix.SockaddrNetlink); ok && sender.Pid == 0 {
			return n, nil
		}
	}
}

// parseExit reads the exit of a thread: its process and its status.
func parseExit(message []byte) (pid int, status syscall.WaitStatus, ok bool) {
	if len(message) < eventData+12 || binary.NativeEndian.Uint32(message[eventAt:]) != exitEvent {
		return 0, 0, false
	}
	data := message[eventData:]
	return int(binary.NativeEndian.Uint32(data[4:])), syscall.WaitStatus(binary.NativeEndian.Uint32(data[8:])), true
}
