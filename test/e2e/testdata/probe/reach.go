package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

const patience = time.Second

// reach says which of some addresses answer: tcp:HOST:PORT, udp:HOST:PORT or
// icmp:HOST.
func reach(all []string) {
	said := make([]string, len(all))
	var asking sync.WaitGroup
	for i, to := range all {
		asking.Go(func() {
			said[i] = "yes"
			protocol, address, _ := strings.Cut(to, ":")
			if err := answers(protocol, address); err != nil {
				said[i] = "no"
				fmt.Println(to, err)
			}
		})
	}
	asking.Wait()
	if err := os.WriteFile("/tmp/r", []byte(strings.Join(said, " ")), 0o600); err != nil {
		fmt.Println(err)
	}
}

func answers(protocol, address string) error {
	if protocol == "icmp" {
		return ping(net.ParseIP(address).To4())
	}
	c, err := net.DialTimeout(protocol, address, patience)
	if err != nil || protocol == "tcp" {
		return err
	}
	defer c.Close()
	err = errors.Join(c.SetDeadline(time.Now().Add(patience)), write(c))
	if err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	return err
}

func write(c net.Conn) error {
	_, err := c.Write([]byte{1})
	return err
}

// ping asks as a program without capabilities does.
func ping(ip net.IP) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, syscall.IPPROTO_ICMP)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	wait := syscall.NsecToTimeval(patience.Nanoseconds())
	request := []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0} // the kernel numbers it
	err = errors.Join(syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &wait),
		syscall.Sendto(fd, request, 0, &syscall.SockaddrInet4{Addr: [4]byte(ip)}))
	if err == nil {
		_, _, err = syscall.Recvfrom(fd, make([]byte, 64), 0)
	}
	return err
}
