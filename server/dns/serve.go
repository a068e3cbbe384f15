package dns

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"cupola/runtime/fault"
)

// maxMessage bounds a question. No client of a container asks as much.
const maxMessage = 4096

// packets answers what comes by UDP. Only what has to be asked elsewhere gets a
// goroutine.
func (s *Server) packets(ctx context.Context) error {
	var asking sync.WaitGroup
	defer asking.Wait()
	buf := make([]byte, maxMessage)
	for {
		n, from, err := s.udp.ReadFromUDPAddrPort(buf)
		if ctx.Err() != nil {
			return nil
		}
		client := from.Addr().Unmap()
		if err != nil || !s.cfg.Clients.Contains(client) {
			continue // the error belongs to an earlier answer that was not delivered
		}
		reply, ours := answer(buf[:n], s.table.Load(), overUDP)
		if ours {
			s.send(reply, from)
			continue
		}
		if !s.busy.enter(client) {
			s.send(failed(buf[:n]), from)
			continue
		}
		query := append([]byte(nil), buf[:n]...)
		asking.Go(fault.Func("dns", func() {
			defer s.busy.leave(client)
			s.send(s.ask(ctx, "udp", query), from)
		}))
	}
}

// send answers a packet. nil means no answer.
func (s *Server) send(reply []byte, to netip.AddrPort) {
	if reply != nil {
		_, _ = s.udp.WriteToUDPAddrPort(reply, to) // one who is gone needs none
	}
}

// connections answers what comes by TCP.
func (s *Server) connections(ctx context.Context) error {
	var open sync.WaitGroup
	defer open.Wait()
	for {
		c, err := s.tcp.AcceptTCP()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			s.cfg.Log.WarnContext(ctx, "dns connection was not accepted", "err", err)
			select { // there are no more files, perhaps
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		client := c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
		if !s.cfg.Clients.Contains(client) || !s.busy.enter(client) {
			c.Close()
			continue
		}
		open.Go(fault.Func("dns", func() {
			defer s.busy.leave(client)
			stop := context.AfterFunc(ctx, func() { c.Close() })
			defer stop()
			defer c.Close()
			s.converse(ctx, c)
		}))
	}
}

// idle is how long a connection waits for the next question.
const idle = 10 * time.Second

// converse answers the questions of one connection, one after the other.
func (s *Server) converse(ctx context.Context, c net.Conn) {
	for {
		if c.SetDeadline(time.Now().Add(idle)) != nil {
			return
		}
		query, err := readMessage(c)
		if err != nil {
			return
		}
		reply, ours := answer(query, s.table.Load(), overTCP)
		if !ours {
			reply = s.ask(ctx, "tcp", query)
		}
		if reply == nil || c.SetDeadline(time.Now().Add(idle)) != nil || writeMessage(c, reply) != nil {
			return
		}
	}
}

// readMessage and writeMessage are of TCP, where a length comes first.
func readMessage(r io.Reader) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	m := make([]byte, binary.BigEndian.Uint16(length[:]))
	_, err := io.ReadFull(r, m)
	return m, err
}

func writeMessage(w io.Writer, m []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(m))), m...))
	return err
}
