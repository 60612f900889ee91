"use strict";

const { Client } = require("./client.js");
const { Worker } = require("./worker.js");
const errors = require("./errors.js");

const { refusal, ...classes } = errors;

module.exports = { Client, Worker, ...classes };
