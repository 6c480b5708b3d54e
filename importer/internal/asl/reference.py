"""Runs the machines of testdata/machines in an interpreter that is not ours, and writes down what they did.

It is the interpreter of moto (pip install "moto[stepfunctions]==5.2.5" jsonata-python==0.6.0), with functions that answer and objects in S3 as NAME.runs.json says. It knows
neither ItemBatcher nor failures that a Map tolerates.
Each run gets its want: the calls in their order, with their inputs, how it ended, and what it gave. `make import-reference`
runs it, and `git diff` shows what changed.
"""
import io
import json
import logging
import pathlib
import sys
import time

import boto3
import jsonata
from moto import mock_aws
from moto.stepfunctions.parser.asl.component.state.exec.state_task import lambda_eval_utils
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import state_task_service_lambda
from moto.stepfunctions.parser.asl.jsonata import jsonata as moto_jsonata

moto_jsonata._eval_jsonata = lambda expression: jsonata.Jsonata(expression).evaluate(None)


class Functions:
    """The Lambda functions of one run."""

    def __init__(self, answers):
        self.answers, self.calls = answers, []

    def invoke(self, FunctionName, Payload=b"{}", **_):
        name = FunctionName.split(":")[6] if ":" in FunctionName else FunctionName
        said = json.loads(Payload) if isinstance(Payload, (str, bytes)) else Payload
        done = sum(1 for call in self.calls if call["function"] == name)
        self.calls.append({"function": name, "input": said})
        script = self.answers[name]
        answer = script[min(done, len(script) - 1)]
        response = {"StatusCode": 200, "ExecutedVersion": "$LATEST"}
        if isinstance(answer, dict) and "error" in answer:
            response["FunctionError"] = "Unhandled"
            answer = {"errorType": answer["error"], "errorMessage": answer["error"]}
        response["Payload"] = io.BytesIO(json.dumps(answer).encode())
        return response


def run(definition, one):
    functions = Functions(one["answers"])
    for module in (lambda_eval_utils, state_task_service_lambda):
        if hasattr(module, "boto_client_for"):
            module.boto_client_for = lambda **_: functions
    for place, content in one.get("objects", {}).items():
        bucket, key = place.split("/")
        s3 = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket=bucket)
        s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(content))
    client = boto3.client("stepfunctions", region_name="eu-west-1")
    machine = client.create_state_machine(name=f"m{time.monotonic_ns()}", definition=json.dumps(definition), roleArn="arn:aws:iam::123456789012:role/r")
    started = client.start_execution(stateMachineArn=machine["stateMachineArn"], input=json.dumps(one["input"]))
    while True:
        told = client.describe_execution(executionArn=started["executionArn"])
        if told["status"] == "FAILED" or told.get("output"):
            break
        time.sleep(0.05)
    want = {"status": told["status"], "calls": functions.calls}
    if told["status"] == "SUCCEEDED":
        try:
            want["output"] = json.loads(told["output"])
        except json.JSONDecodeError:  # it writes a text without its quotes
            want["output"] = told["output"]
    return want


@mock_aws(config={"stepfunctions": {"execute_state_machine": True}})
def main(folder):
    for file in sorted(pathlib.Path(folder).glob("*.runs.json")):
        definition = json.loads(file.with_name(file.name.replace(".runs.", ".asl.")).read_text())
        runs = json.loads(file.read_text())
        for one in runs:
            one["want"] = run(definition, one)
            print(file.name, one["name"], one["want"]["status"], len(one["want"]["calls"]), flush=True)
        file.write_text(json.dumps(runs, indent=1) + "\n")


logging.disable(logging.CRITICAL)
main(sys.argv[1])
