package main

import (
	"embed"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood/internal/testkit/standin"
)

//go:embed install
var files embed.FS

// tools is where stand-ins are installed. It is not part of the repository.
const tools = ".tools"

// product is one stand-in.
type product struct {
	name, version string
	// serves are the variables for which it is the endpoint.
	serves []string
	// files of install/ go into its folder; steps, run there in turn, make of them what serve starts.
	files []string
	steps [][]string
	// serve returns the command that serves until its standard input ends, and its environment.
	serve func(port string) (command, environment []string)
	// needs are the programs that it takes to install and run it, and where Debian has them.
	needs map[string]string
}

// String is name and version.
func (p product) String() string { return p.name + " " + p.version }

// folder is where it is installed, from the root of the repository.
func (p product) folder() string {
	folder, err := filepath.Abs(filepath.Join(tools, strings.ReplaceAll(p.name, " ", "")+"-"+p.version))
	if err != nil {
		panic(err) // There is no working directory.
	}
	return folder
}

// environment is what tests against it are told.
func (p product) environment(endpoint string) []string {
	var all []string
	for _, variable := range p.serves {
		all = append(all, variable+"="+endpoint, variable+standin.ProductSuffix+"="+p.String())
	}
	return all
}

// stack is a set of stand-ins that together serve all that the tests need.
type stack struct{ products []product }

// has reports whether a product of this name is part of it.
func (s stack) has(name string) bool {
	return slices.ContainsFunc(s.products, func(p product) bool { return p.name == name })
}

// String names its products.
func (s stack) String() string {
	text := s.products[0].String()
	for _, p := range s.products[1:] {
		text += " and " + p.String()
	}
	return text
}

func stacks() []stack {
	return []stack{
		{[]product{miniStack()}},
		{[]product{dynamoDBLocal(), elasticMQ(), moto()}},
	}
}

// stacksWith returns the stack that has a product of this name.
func stacksWith(name string) ([]stack, error) {
	var names []string
	for _, s := range stacks() {
		if s.has(name) {
			return []stack{s}, nil
		}
		for _, p := range s.products {
			names = append(names, p.name)
		}
	}
	return nil, fmt.Errorf("there is no stand-in %s; there are %s", name, strings.Join(names, ", "))
}

func miniStack() product {
	return product{
		name: "MiniStack", version: "1.5.33",
		serves: []string{standin.DynamoDBVariable, standin.SQSVariable, standin.S3Variable, standin.EndpointVariable},
		files:  []string{"requirements.txt", "start_ministack.py"},
		steps: [][]string{
			{"python3", "-m", "venv", "--clear", "venv"},
			{"venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", "requirements.txt"},
		},
		serve: func(port string) (command, environment []string) {
			// It binds all addresses unless told, and MQTT on all whatever it is told, unless that is off.
			return []string{"venv/bin/python", "start_ministack.py"},
				[]string{"BIND_HOST=127.0.0.1", "GATEWAY_PORT=" + port, "IOT_MTLS_ENABLED=0", "AWS_ENDPOINT_URL=http://127.0.0.1:" + port}
		},
		needs: map[string]string{"python3": "python3 python3-venv"},
	}
}

// moto serves S3 alone: what it does otherwise than DynamoDB is more than a test can allow for.
func moto() product {
	p := pip("moto", "5.2.5", "moto.txt")
	p.serves = []string{standin.S3Variable}
	p.files = append(p.files, "start_moto.py")
	p.serve = func(port string) (command, environment []string) {
		return []string{"venv/bin/python", "start_moto.py", port}, nil
	}
	return p
}

func dynamoDBLocal() product {
	p := java("DynamoDB Local", "3.1.0", "DynamoDBLocal")
	p.serves = []string{standin.DynamoDBVariable}
	p.files = []string{"dynamodblocal.xml", "DynamoDBLocal.java"}
	return p
}

func elasticMQ() product {
	p := java("ElasticMQ", "1.7.1", "ElasticMQ")
	p.serves = []string{standin.SQSVariable}
	p.files = []string{"elasticmq.xml", "ElasticMQ.java"}
	return p
}

// java is a product of Maven Central, started by a class of ours.
func java(name, version, class string) product {
	return product{
		name: name, version: version,
		steps: [][]string{
			{"sh", "-c", "exec mvn -q -B -f *.xml dependency:copy-dependencies -DoutputDirectory=lib"},
			{"javac", "-cp", "lib/*", "-d", ".", class + ".java"},
		},
		serve: func(port string) (command, environment []string) {
			return []string{"java", "-Xmx512m", "-Djava.library.path=lib", "-cp", ".:lib/*", class, port}, nil
		},
		needs: map[string]string{"mvn": "maven", "javac": "default-jdk-headless", "java": "default-jdk-headless"},
	}
}
