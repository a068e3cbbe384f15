package data

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"cupola/test/e2e"
)

// rabbitmqOutlives publishes to a durable queue by the app client while the daemon and the
// server are killed: each message that was confirmed is there. A restore brings back the
// messages of a backup, but not the users that were there when it was made.
func rabbitmqOutlives(d *e2e.Daemon, instance string) {
	d.T.Helper()
	answers(d, "rabbitmq", "the first\n", "done")
	ctx, cancel := context.WithCancel(d.T.Context())
	var confirmed []string
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ctx.Err() == nil; n++ {
			if _, err := try(d, "rabbitmq", fmt.Sprintf("message %d\n", n)); err == nil {
				confirmed = append(confirmed, fmt.Sprintf("message %d\n", n))
			}
			<-time.After(20 * time.Millisecond)
		}
	}()
	<-time.After(time.Second)
	killed(d)
	answers(d, "rabbitmq", "after the daemon\n", "done")
	<-time.After(time.Second)
	diesAndStarts(d, "rabbitmq.conf")
	answers(d, "rabbitmq", "after the server\n", "done")
	cancel()
	<-ended
	all, err := try(d, "rabbitmq", "all")
	for _, message := range append(confirmed, "the first\n", "after the daemon\n", "after the server\n") {
		if !strings.Contains(all, message) {
			d.T.Errorf("got %q, %v; want the message %q, which was confirmed", all, err, message)
		}
	}
	d.T.Logf("%d messages, none lost", len(confirmed)+3)
	stays, goes := keyOf(d, instance, "stays"), keyOf(d, instance, "goes")
	backup := backUp(d, "queues")
	c := logsIn(d, instance, goes)
	defer c.Close()
	answers(d, "rabbitmq", "after the backup\n", "done")
	if err := d.Change("DELETE", "/v3/service_credential_bindings/"+goes.guid, nil); err != nil {
		d.T.Fatal(err)
	}
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		d.T.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
		d.T.Error("the connection of a deleted key did not end")
	}
	hidesErlang(d, instance)
	began := time.Now()
	services(d, "restore", "queues", backup, "--force")
	d.T.Logf("restored in %.1f s", time.Since(began).Seconds())
	answers(d, "rabbitmq", "all", all)
	logsIn(d, instance, stays).Close()
	if c, err := amqp(d, instance, goes); err == nil {
		c.Close()
		d.T.Error("a deleted key connects after a restore of a backup that has its user")
	}
	if err := d.Change("DELETE", "/v3/service_credential_bindings/"+stays.guid, nil); err != nil {
		d.T.Fatal(err)
	}
	if err := d.Change("DELETE", "/v3/service_instances/"+instance, nil); err != nil {
		d.T.Fatal(err)
	}
}

// hidesErlang wants the ports of Erlang's distribution and its names closed to the network.
func hidesErlang(d *e2e.Daemon, instance string) {
	d.T.Helper()
	for _, port := range []string{"4369", "25672"} {
		if c, err := net.DialTimeout("tcp", net.JoinHostPort(dataAddress(d, instance), port), 5*time.Second); err == nil {
			c.Close()
			d.T.Errorf("port %s accepts connections", port)
		}
	}
}

// serviceKey is a key of a service instance.
type serviceKey struct {
	guid, Username, Password, VHost string
}

// keyOf makes a key.
func keyOf(d *e2e.Daemon, instance, name string) (k serviceKey) {
	d.T.Helper()
	err := d.Change("POST", "/v3/service_credential_bindings", e2e.Doc{"type": "key", "name": name, "relationships": e2e.Doc{"service_instance": e2e.ToOne(instance)}})
	if err != nil {
		d.T.Fatal(err)
	}
	k.guid = d.First("/v3/service_credential_bindings?names=" + name + "&service_instance_guids=" + instance)
	var details struct{ Credentials *serviceKey }
	details.Credentials = &k
	d.API("GET", "/v3/service_credential_bindings/"+k.guid+"/details", nil, &details)
	return k
}

// logsIn is amqp, once that succeeds.
func logsIn(d *e2e.Daemon, instance string, k serviceKey) (c net.Conn) {
	d.T.Helper()
	e2e.Eventually(d.T, time.Minute, func() string {
		var err error
		if c, err = amqp(d, instance, k); err != nil {
			return err.Error()
		}
		return ""
	})
	return c
}

// amqp connects this machine to a RabbitMQ as the user of a key, as far as the virtual
// host's opening.
func amqp(d *e2e.Daemon, instance string, k serviceKey) (net.Conn, error) {
	d.T.Helper()
	c, err := net.DialTimeout("tcp", net.JoinHostPort(dataAddress(d, instance), "5672"), 5*time.Second)
	if err != nil {
		return nil, err
	}
	short := func(text string) []byte { return append([]byte{byte(len(text))}, text...) }
	response := "\x00" + k.Username + "\x00" + k.Password
	start := slices.Concat([]byte{0, 0, 0, 0}, short("PLAIN"), binary.BigEndian.AppendUint32(nil, uint32(len(response))), []byte(response), short("en_US"))
	err = c.SetDeadline(time.Now().Add(10 * time.Second))
	_, greeted := c.Write([]byte("AMQP\x00\x00\x09\x01"))
	err = errors.Join(err, greeted,
		says(c, 10), tells(c, 11, start),
		says(c, 30), tells(c, 31, []byte{0x07, 0xff, 0, 2, 0, 0, 0, 0}), tells(c, 40, slices.Concat(short(k.VHost), []byte{0, 0})),
		says(c, 41))
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// tells sends a method of a connection of AMQP.
func tells(c io.Writer, method byte, arguments []byte) error {
	payload := slices.Concat([]byte{0, 10, 0, method}, arguments)
	_, err := c.Write(slices.Concat([]byte{1, 0, 0}, binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload, []byte{0xce}))
	return err
}

// says reads a method of a connection of AMQP, which must be this one.
func says(c io.Reader, method byte) error {
	head := make([]byte, 7)
	if _, err := io.ReadFull(c, head); err != nil {
		return fmt.Errorf("AMQP method %d: %w", method, err)
	}
	payload := make([]byte, min(binary.BigEndian.Uint32(head[3:]), 1<<20)+1)
	if _, err := io.ReadFull(c, payload); err != nil {
		return fmt.Errorf("AMQP method %d: %w", method, err)
	}
	if !bytes.HasPrefix(payload, []byte{0, 10, 0, method}) {
		return fmt.Errorf("got %q; want the AMQP method %d", payload, method)
	}
	return nil
}
