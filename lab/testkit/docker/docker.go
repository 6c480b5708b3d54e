// Package docker finds the Docker of this machine for tests that run functions in containers: the image they
// run in, and the way by which they reach what serves on loopback here. It starts no container.
package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Docker is the Docker that is here.
type Docker struct {
	// Version is its server's.
	Version string
	// Host is this machine as containers see it.
	Host string
	// listen is where they reach it.
	listen string
}

// String says which Docker it is.
func (d Docker) String() string { return "Docker " + d.Version }

// Find fails with a plain sentence when there is no Docker: nothing was run then.
func Find(ctx context.Context) (Docker, error) {
	version, err := says(ctx, nil, "version", "--format", "{{.Server.Version}}")
	if err != nil {
		return Docker{}, fmt.Errorf("not run: functions run in Docker here, and none answers: %w", err)
	}
	subnets, err := says(ctx, nil, "network", "inspect", "bridge", "--format", "{{range .IPAM.Config}}{{.Subnet}} {{end}}")
	if err != nil {
		return Docker{}, err
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return Docker{}, err
	}
	for subnet := range strings.FieldsSeq(subnets) {
		_, network, err := net.ParseCIDR(subnet)
		if err != nil {
			return Docker{}, fmt.Errorf("read the network of Docker: %w", err)
		}
		for _, a := range addresses {
			if here, ok := a.(*net.IPNet); ok && network.Contains(here.IP) {
				return Docker{version, here.IP.String(), here.IP.String()}, nil
			}
		}
	}
	// Docker in a machine of its own, as on a Mac: it leads this name to loopback here.
	return Docker{version, "host.docker.internal", "127.0.0.1"}, nil
}

// says runs a command of Docker's and returns what it prints.
func says(ctx context.Context, input io.Reader, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "docker", arguments...)
	var out, log bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = input, &out, &log
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("docker %s: %w: %s", arguments[0], err, strings.TrimSpace(log.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// Image is what functions run in.
type Image struct {
	Name string
	// StandIn: it is not AWS's, which could not be had.
	StandIn bool
}

// String says whose image it is.
func (i Image) String() string {
	if i.StandIn {
		return "AWS's runtime emulator in a STAND-IN IMAGE, because AWS's could not be pulled"
	}
	return "image " + i.Name
}

// Image returns AWS's image for the functions' runtime, on this machine's architecture, or else a stand-in of our own.
func (d Docker) Image(ctx context.Context) (Image, error) {
	aws := "public.ecr.aws/lambda/provided:al2023-" + Architecture()
	if _, err := says(ctx, nil, "image", "inspect", aws); err == nil {
		return Image{Name: aws}, nil
	}
	_, refused := says(ctx, nil, "pull", aws)
	if refused == nil {
		return Image{Name: aws}, nil
	}
	i := Image{Name: "makegood-stand-in:al2023-" + Architecture(), StandIn: true}
	files, err := standInFiles()
	if err != nil {
		return Image{}, fmt.Errorf("%w; and no stand-in for it can be made: %w", refused, err)
	}
	_, err = says(ctx, files, "import", "--change", "WORKDIR /var/task", "--change", "ENV PATH=/bin", "-", i.Name)
	return i, err
}

// standInFiles is what sam needs in an image, as a tar archive: folders, and sh, mv and chmod by busybox.
func standInFiles() (io.Reader, error) {
	const busybox = "/bin/busybox"
	program, err := os.ReadFile(busybox)
	if err != nil {
		return nil, fmt.Errorf("%w (apt-get install busybox-static)", err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	var wrong []error
	for _, folder := range []string{"bin/", "tmp/", "etc/", "opt/", "var/", "var/task/", "var/runtime/"} {
		wrong = append(wrong, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: 0o755}))
	}
	wrong = append(wrong, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755, Size: int64(len(program))}))
	_, err = w.Write(program)
	wrong = append(wrong, err)
	for _, name := range []string{"sh", "mv", "chmod"} {
		wrong = append(wrong, w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + name, Linkname: "busybox", Mode: 0o777}))
	}
	wrong = append(wrong, w.Close())
	return &archive, errors.Join(wrong...)
}

// Architecture is this machine's, as Lambda calls it.
func Architecture() string {
	if runtime.GOARCH == "arm64" {
		return "arm64"
	}
	return "x86_64"
}

// Bridge makes a server on loopback reachable for containers at a port, 0 being a free one, until stop is called.
// It returns the address that they see. What is bound is Docker's own address of this machine, or loopback.
func (d Docker) Bridge(ctx context.Context, server, port string) (seen string, stop func(), err error) {
	to, err := url.Parse(server)
	if err != nil {
		return "", nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(d.listen, port))
	if err != nil {
		return "", nil, fmt.Errorf("listen for containers: %w", err)
	}
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return // It was closed.
			}
			go forward(from, to.Host)
		}
	}()
	_, port, err = net.SplitHostPort(listener.Addr().String())
	return "http://" + net.JoinHostPort(d.Host, port), func() { _ = listener.Close() }, err
}

// forward copies between a connection and a server, until one of them has ended.
func forward(from net.Conn, address string) {
	defer from.Close()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return // The function sees its connection end, and says so.
	}
	defer to.Close()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			_, _ = io.Copy(way[0], way[1]) // However it ends, it has ended.
			done <- struct{}{}
		}()
	}
	<-done
}
